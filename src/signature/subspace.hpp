#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <Eigen/Core>

#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/view.hpp>
#include <normscope/signature/extract.hpp>

#include "quadric.hpp"

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

/// Rows in coordinates y of the subspace, and whitened: y = mean + colour x.
struct Coordinates {
  std::size_t rows = 0;          ///< of all members
  std::vector<double> points{};  ///< x of this member's rows (its rows × rank)
  Eigen::VectorXd mean{};        ///< of y
  Eigen::MatrixXd colour{};      ///< y − mean = colour x
  double off = 0.0;              ///< root mean square distance of a logit from the subspace, of some rows
  std::size_t distinct = 0;      ///< rows, by a hash of their bytes

  [[nodiscard]] MatrixView<const double> view(std::size_t rank) const {
    return {points.data(), points.size() / rank, rank};
  }
};

/// Reads every row of this member once, in blocks.
///
/// Errors    as `Outputs::whole_row`; Cancelled
[[nodiscard]] Coordinates coordinates(const Outputs& outputs, const Subspace& subspace,
                                      const RowSlices& slices, const ExtractOptions& options);

/// The logits of some tokens as offsets + A u, with their mean over these tokens subtracted, and the singular
/// value decomposition of A.
///
/// Shapes    left (count × rank), values (rank), offsets, sizes (count)
struct Basis {
  std::size_t count = 0;
  std::size_t rank = 0;
  std::vector<double> left{};
  std::vector<double> values{};
  std::vector<double> offsets{};
  std::vector<double> lengths{};  ///< of A's rows and offsets; the rounding of a logit is relative to these
};

/// The whole of A (tokens × width) with its offsets, from which bases of fewer tokens are computed.
class BasisMaker {
 public:
  /// Requires  both outlive this
  BasisMaker(MatrixView<const double> matrix, std::span<const double> offsets, unsigned threads)
      : matrix_(matrix), offsets_(offsets), threads_(threads) {}
  /// The basis of these tokens; of all if `tokens` is empty.
  [[nodiscard]] Basis of(std::span<const std::size_t> tokens) const;

 private:
  MatrixView<const double> matrix_;
  std::span<const double> offsets_;
  unsigned threads_;
};

/// A row decomposed by a basis.
struct Fit {
  std::vector<double> difference{};  ///< logits − offsets, with mean 0
  std::vector<double> inside{};      ///< its coordinates along `left`
  std::vector<double> off{};         ///< its part outside the subspace
  double off_size = 0.0;
  double length = 0.0;  ///< |inside / values|
};

/// Several rows at once.
[[nodiscard]] std::vector<Fit> fit(const Basis& basis, std::span<const std::vector<double>* const> logits,
                                   unsigned threads);

/// w with Aᵀw = u/|u| for the fit's u: the direction of logits along which |u| changes.
[[nodiscard]] std::vector<double> measure_of_length(const Basis& basis, const Fit& fit);

/// The step to the row from the nearest point of the solid ellipsoid.
[[nodiscard]] std::vector<double> step_from_ellipsoid(const Basis& basis, const Fit& fit);

}  // namespace normscope::signature
