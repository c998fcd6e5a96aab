#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include <normscope/nets/scatter.hpp>
#include <normscope/proof/separate.hpp>
#include <normscope/verify/result.hpp>

namespace normscope::results {

/// The result of `separate` for rows of several classes, sorted by class.
struct SeparateResult {
  std::size_t width;
  std::span<const std::size_t> class_rows;  ///< number of rows of each class
  std::span<const std::size_t> given_row;   ///< a row's index in the input that its class came from
  std::span<const std::int64_t> classes;    ///< the label of each class; none for A and B
  double ssr;
  const nets::LinearRatio& linear;
  const std::optional<proof::Separation>& separation;  ///< of two classes
  const verify::Inputs& inputs;
};

/// How well classes separate, schema "normscope.separate/1" (docs/schemas/separate.schema.json).
[[nodiscard]] nlohmann::ordered_json separate(const SeparateResult& result);

}  // namespace normscope::results
