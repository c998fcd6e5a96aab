#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::nets {

/// Labelled samples: row i of `x` belongs to class `labels[i]` < `classes`.
///
/// Shapes    x (labels.size(), width)
struct Dataset {
  std::size_t width = 0;
  std::size_t classes = 0;
  std::vector<double> x{};
  std::vector<std::uint32_t> labels{};

  [[nodiscard]] std::size_t rows() const { return labels.size(); }
  [[nodiscard]] MatrixView<const double> view() const { return {x.data(), rows(), width}; }
};

/// Throws unless `data` has at least one row and one feature, finite entries, two classes or more, and labels
/// below the number of classes; the message begins with `who`.
///
/// Errors    Shape, Argument
void validate(std::string_view who, const Dataset& data);

/// Samples with labels given as numbers, as in an array file.
///
/// Errors    Shape; Argument for a label that is not an integer in [0, 2^24), naming its row
[[nodiscard]] Dataset dataset(std::string_view who, std::size_t width, std::vector<double> x,
                              const std::vector<double>& labels);

/// Rows equal to an earlier row with another label, which no net can fit both.
struct Conflicts {
  std::size_t rows = 0;   ///< number of such rows
  std::size_t first = 0;  ///< the first of them
  std::size_t of = 0;     ///< the row that it equals
};

/// Cost      O(rows · width)
[[nodiscard]] Conflicts conflicts(const Dataset& data);

}  // namespace normscope::nets
