#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::nets {

/// The distinct rows, with the class index of each.
struct Samples {
  std::vector<std::size_t> rows;       ///< the first row of each sample, ascending
  std::vector<std::uint32_t> classes;  ///< of each sample, an index into `names`
  std::vector<std::int64_t> names;     ///< labels, ascending
  std::vector<std::int64_t> wanted;  ///< the label of each row of x, after equal rows were given the same one
  std::size_t relabelled = 0;
};

/// Errors    Shape, Argument: see `construct`
[[nodiscard]] Samples distinct_samples(MatrixView<const double> x, std::span<const std::int64_t> labels,
                                       bool first_label_wins);

/// The rows of `samples` as a matrix of their own.
[[nodiscard]] std::vector<double> gather(MatrixView<const double> x, const std::vector<std::size_t>& rows);

}  // namespace normscope::nets
