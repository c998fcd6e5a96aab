#include <normscope/numeric/eigen/decompositions.hpp>

#include <algorithm>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>

namespace normscope {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;

/// Overwrites its matrix.
using Householder = Eigen::HouseholderQR<Eigen::Ref<MatrixXd>>;

MatrixXd upper(const MatrixXd& factors) {
  return factors.topRows(std::min(factors.rows(), factors.cols())).triangularView<Eigen::Upper>();
}

}  // namespace

SymmetricEigen symmetric_eigen(const MatrixXd& matrix) {
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(matrix);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

Eigen::VectorXd symmetric_eigenvalues(const MatrixXd& matrix) {
  return Eigen::SelfAdjointEigenSolver<MatrixXd>(matrix, Eigen::EigenvaluesOnly).eigenvalues();
}

ThinQr thin_qr(MatrixXd matrix) {
  const Index least = std::min(matrix.rows(), matrix.cols());
  const Householder factors(matrix);
  return {factors.householderQ() * MatrixXd::Identity(matrix.rows(), least), upper(matrix)};
}

MatrixXd triangle_of(MatrixXd matrix) {
  if (matrix.size() == 0) return MatrixXd::Zero(std::min(matrix.rows(), matrix.cols()), matrix.cols());
  const Householder factors(matrix);
  return upper(matrix);
}

bool has_cholesky_factor(const MatrixXd& matrix) {
  // Eigen takes a NaN for a positive pivot.
  const Eigen::LLT<MatrixXd> factors(matrix);
  return factors.info() == Eigen::Success && factors.matrixLLT().diagonal().allFinite();
}

}  // namespace normscope
