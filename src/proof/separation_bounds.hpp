#pragma once

#include <limits>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/proof/separate.hpp>

namespace normscope::proof {

/// The margin that is proved for a normal.
struct SeparatedBy {
  double margin = -std::numeric_limits<double>::infinity();  ///< a lower bound in exact arithmetic
  double offset = 0.0;                                       ///< between the sets, if a double lies there
};

[[nodiscard]] SeparatedBy separated_by(MatrixView<const double> a, MatrixView<const double> b,
                                       const std::vector<double>& normal);

/// Whether the offset lies between the sets' products with the normal, up to its own rounding.
[[nodiscard]] bool is_between(MatrixView<const double> a, MatrixView<const double> b,
                              const std::vector<double>& normal, double offset);

/// |Σλa − Σμb| for weights divided by their sums: upper bounds in exact arithmetic, infinite for invalid
/// weights.
struct Residual {
  double length = std::numeric_limits<double>::infinity();
  /// The largest over the columns of the distance divided by the weighted sum of the rows' distances from the
  /// heaviest row of A.
  double relative = std::numeric_limits<double>::infinity();
};

[[nodiscard]] Residual residual_of(MatrixView<const double> a, MatrixView<const double> b,
                                   const std::vector<PointWeight>& weights_a,
                                   const std::vector<PointWeight>& weights_b);

}  // namespace normscope::proof
