#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include <normscope/certificates/result.hpp>
#include <normscope/convex/separate.hpp>
#include <normscope/separability/scatter.hpp>

namespace normscope::documents {

/// The result of `separate` for rows of several classes, sorted by class.
struct SeparateResult {
  std::size_t width;
  std::span<const std::size_t> class_rows;  ///< number of rows of each class
  std::span<const std::size_t> given_row;   ///< a row's index in the input that its class came from
  std::span<const std::int64_t> classes;    ///< the label of each class; none for A and B
  double ssr;
  const separability::LinearRatio& linear;
  const std::optional<convex::Separation>& separation;  ///< of two classes
  const certificates::Inputs& inputs;
};

/// How well classes separate, schema "normscope.separate/1" (docs/schemas/separate.schema.json).
[[nodiscard]] nlohmann::ordered_json separate(const SeparateResult& result);

}  // namespace normscope::documents
