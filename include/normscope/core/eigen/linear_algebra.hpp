#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <Eigen/Core>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/view.hpp>

/// Row-major arrays as matrices of Eigen, and the reverse, for modules that use it; not installed, as no
/// public header needs it.
namespace normscope {

using RowMajorMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The array as a matrix of rows × columns, without a copy.
[[nodiscard]] inline Eigen::Map<const RowMajorMatrix> row_major(const std::vector<double>& values,
                                                                Eigen::Index rows, Eigen::Index columns) {
  NORMSCOPE_ASSERT(values.size() == static_cast<std::size_t>(rows * columns));
  return {values.data(), rows, columns};
}
[[nodiscard]] inline Eigen::Map<RowMajorMatrix> row_major(std::vector<double>& values, Eigen::Index rows,
                                                          Eigen::Index columns) {
  NORMSCOPE_ASSERT(values.size() == static_cast<std::size_t>(rows * columns));
  return {values.data(), rows, columns};
}

/// A row-major matrix that converts to a MatrixView.
class RowMajor {
 public:
  explicit RowMajor(const Eigen::MatrixXd& matrix) : rows_(matrix) {}
  // NOLINTNEXTLINE(google-explicit-constructor): implicit, to be passed as an argument
  operator MatrixView<const double>() const {
    return {rows_.data(), static_cast<std::size_t>(rows_.rows()), static_cast<std::size_t>(rows_.cols())};
  }

 private:
  RowMajorMatrix rows_;
};

[[nodiscard]] inline std::span<const double> as_span(const Eigen::VectorXd& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

// Not installed, as no public header needs it.

/// A B by `multiply`, which is several times as fast as Eigen's own product where that is compiled for any
/// processor of its family.
[[nodiscard]] inline Eigen::MatrixXd product(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  NORMSCOPE_ASSERT(a.cols() == b.rows());
  // Columns in memory are rows of the transpose: Bᵀ Aᵀ.
  const auto transposed = [](const Eigen::MatrixXd& matrix) {
    const auto rows = static_cast<std::size_t>(matrix.rows());
    return Factor<double>(matrix.data(), static_cast<std::size_t>(matrix.cols()), rows, rows);
  };
  Eigen::MatrixXd result(a.rows(), b.cols());
  multiply(transposed(b), transposed(a),
           MatrixView<double>(result.data(), static_cast<std::size_t>(b.cols()),
                              static_cast<std::size_t>(a.rows())));
  return result;
}

// Decompositions of Eigen that several modules use, compiled once because each instance takes the compiler 5
// to 20 s. Not installed, since no public header needs it.

/// A = V diag(values) Vᵀ, values ascending.
struct SymmetricEigen {
  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;  ///< V, by columns
};

/// The decomposition of a symmetric matrix, of which the lower triangle is read.
[[nodiscard]] SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& matrix);
[[nodiscard]] Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& matrix);

/// A = Q R with k = min(rows, columns).
struct ThinQr {
  Eigen::MatrixXd basis;     ///< Q (rows × k)
  Eigen::MatrixXd triangle;  ///< R (k × columns), upper triangular
};

[[nodiscard]] ThinQr thin_qr(Eigen::MatrixXd matrix);
/// R alone: |R x| = |A x| for every x, up to rounding.
[[nodiscard]] Eigen::MatrixXd triangle_of(Eigen::MatrixXd matrix);

/// Whether the Cholesky factorization succeeds in floating point; not with NaN or infinity.
[[nodiscard]] bool has_cholesky_factor(const Eigen::MatrixXd& matrix);

/// Lower triangular L with A = L Lᵀ, for a positive definite A of which the lower triangle is read.
[[nodiscard]] Eigen::MatrixXd cholesky_factor(const Eigen::MatrixXd& matrix);
/// Solves A x = b by that factor.
[[nodiscard]] Eigen::VectorXd solve_positive(const Eigen::MatrixXd& matrix, const Eigen::VectorXd& right);

/// The inverse of a nonsingular matrix, by LU decomposition with partial pivoting.
[[nodiscard]] Eigen::MatrixXd inverse_of(const Eigen::MatrixXd& matrix);

/// The shortest x for which |A x − b| is least.
[[nodiscard]] Eigen::VectorXd least_squares(const Eigen::MatrixXd& matrix, const Eigen::VectorXd& right);

/// A P = Q R with the columns of A in an order in which the pivots |R_ii| descend.
class PivotedQr {
 public:
  explicit PivotedQr(const Eigen::MatrixXd& matrix);
  ~PivotedQr();

  [[nodiscard]] Eigen::VectorXd pivots() const;
  [[nodiscard]] Eigen::MatrixXd basis(Eigen::Index columns) const;  ///< the first columns of Q
  /// An x for which |A x − b| is least, with zeros where pivots are negligible.
  [[nodiscard]] Eigen::VectorXd solve(const Eigen::VectorXd& right) const;

 private:
  struct Factors;
  std::unique_ptr<const Factors> factors_;
};

/// A = Q [T 0; 0 0] Z with orthogonal Q and Z, where T (rank × rank) is nonsingular.
class CompleteOrthogonal {
 public:
  /// Pivots of at most `tolerance` times the largest count as zero.
  CompleteOrthogonal(const Eigen::MatrixXd& matrix, double tolerance);
  ~CompleteOrthogonal();

  [[nodiscard]] Eigen::Index rank() const;
  [[nodiscard]] Eigen::MatrixXd from_basis(Eigen::MatrixXd matrix) const;  ///< Q M
  [[nodiscard]] Eigen::MatrixXd to_basis(Eigen::MatrixXd matrix) const;    ///< Qᵀ M
  /// The shortest x for which |A x − b| is least.
  [[nodiscard]] Eigen::VectorXd solve(const Eigen::VectorXd& right) const;

 private:
  struct Factors;
  std::unique_ptr<const Factors> factors_;
};

}  // namespace normscope
