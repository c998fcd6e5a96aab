#pragma once

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

}  // namespace normscope
