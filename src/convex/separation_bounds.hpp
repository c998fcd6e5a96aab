#pragma once

#include <limits>
#include <vector>

#include <normscope/convex/separate.hpp>
#include <normscope/numeric/exact.hpp>

#include "scaled_hulls.hpp"

namespace normscope::convex {

/// What a normal proves.
struct SeparatedBy {
  double margin = -std::numeric_limits<double>::infinity();  ///< a lower bound in exact arithmetic
  double offset = 0.0;                                       ///< between the sets where a double is
};

[[nodiscard]] SeparatedBy separated_by(MatrixView<const double> a, MatrixView<const double> b,
                                       const std::vector<double>& normal);

/// Whether the offset lies between the sets' products with the normal, but for its own rounding.
[[nodiscard]] bool is_between(MatrixView<const double> a, MatrixView<const double> b,
                              const std::vector<double>& normal, double offset);

/// |Σλa − Σμb|, weights divided by their sums: upper bounds in exact arithmetic, infinite for weights that
/// are none.
struct Residual {
  double length = std::numeric_limits<double>::infinity();
  /// Largest of a column, over the weighted sum of how far its rows are there from the heaviest one of A.
  double relative = std::numeric_limits<double>::infinity();
};

[[nodiscard]] Residual residual_of(MatrixView<const double> a, MatrixView<const double> b,
                                   const std::vector<Share>& weights_a, const std::vector<Share>& weights_b);

}  // namespace normscope::convex
