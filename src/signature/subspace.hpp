#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/view.hpp>

namespace normscope::signature {

/// A = left diag(values) rightᵀ without the smallest singular values.
///
/// Shapes    left (rows × rank), values (rank, descending), right (columns × rank), row-major
struct ThinSvd {
  std::size_t rank = 0;
  std::vector<double> left{};
  std::vector<double> values{};
  std::vector<double> right{};
  std::vector<double> all{};  ///< every singular value, down to 1e-8 of the largest, those cut included
};

/// The singular values above `cut` times the largest, and their vectors. Long matrices are reduced by their
/// Gram matrix, twice, so that the vectors are orthonormal to rounding. Values below 1e-7 of the largest are
/// not resolved.
///
/// Requires  cut >= 1e-7
///
/// Cost      4 rows columns² on `threads` threads, and columns³; columns and rows exchanged for a wide matrix
[[nodiscard]] ThinSvd thin_svd(Factor<double> a, double cut, unsigned threads);

/// c = a b on `threads` threads; the same bits for any number.
void product(Factor<double> a, Factor<double> b, MatrixView<double> c, unsigned threads);

}  // namespace normscope::signature
