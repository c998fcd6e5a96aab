#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/convex/separate.hpp>
#include <normscope/core/view.hpp>
#include <normscope/separability/scatter.hpp>

#include "result_inputs.hpp"

namespace normscope::cli {

/// Rows of several classes, those of a class together.
struct Sample {
  std::vector<double> values{};
  std::size_t width = 0;
  std::vector<std::size_t> class_of{};
  std::vector<std::size_t> class_rows{};
  std::vector<std::size_t> given_row{};  ///< where a row stands in the input that its class came from
  std::vector<std::int64_t> names{};     ///< a label a class; none for A and B

  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), class_of.size(), width}; }
  /// Rows of the first two classes.
  [[nodiscard]] MatrixView<const double> part(std::size_t index) const {
    const std::size_t first = index == 0 ? 0 : class_rows[0];
    return {values.data() + first * width, class_rows[index], width};
  }
  void add(std::size_t index, std::size_t row, std::span<const double> features) {
    values.insert(values.end(), features.begin(), features.end());
    class_of.push_back(index);
    given_row.push_back(row);
    ++class_rows[index];
  }
};

/// What `separate` was asked and found.
struct SeparateResult {
  const Sample& sample;
  double ssr;
  const separability::LinearRatio& linear;
  const std::optional<convex::Separation>& separation;  ///< of two classes
  const certificates::Inputs& inputs;
};

/// The result of `separate` as docs/schemas/separate.schema.json describes it.
[[nodiscard]] nlohmann::ordered_json separate_document(const SeparateResult& result);

}  // namespace normscope::cli
