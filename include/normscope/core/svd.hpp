#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/product.hpp>

namespace normscope {

/// The singular value decomposition A = U diag(values) Vᵀ, with rank = min(rows, columns) values in
/// decreasing order.
///
/// Shapes    left (rows, rank) and right (columns, rank), row-major, columns of length 1; values (rank)
struct Svd {
  std::vector<double> left;
  std::vector<double> values;
  std::vector<double> right;
};

/// Which singular vectors are computed; with `left`, `Svd::right` is empty.
enum class SingularVectors { left, both };

/// The singular value decomposition of A, by Eigen's divide and conquer.
///
/// Accuracy  |A − U diag(values) Vᵀ|, |UᵀU − 1| and |VᵀV − 1| a small multiple of rank · u of |A| and of 1
///           (test: Svd.GivesBackItsMatrix)
///
/// Limits    NaN throughout if an entry of A is not finite
///
/// Cost      O(rows · columns · rank)
[[nodiscard]] Svd singular_value_decomposition(Factor<double> a,
                                               SingularVectors wanted = SingularVectors::both);

}  // namespace normscope
