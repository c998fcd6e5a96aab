#pragma once

#include <memory>

#include <Eigen/Core>

/// Decompositions of Eigen that several modules use, compiled once because each instance takes the compiler 5
/// to 20 s. Not installed, since no public header needs it.
namespace normscope {

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
