#include <normscope/core/eigen/linear_algebra.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>

#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope {
namespace {

using Eigen::Index;

std::vector<double> to_row_major(const Eigen::MatrixXd& matrix) {
  std::vector<double> result(static_cast<std::size_t>(matrix.size()));
  row_major(result, matrix.rows(), matrix.cols()) = matrix;
  return result;
}

}  // namespace

Svd singular_value_decomposition(Factor<double> a, SingularVectors wanted) {
  if (a.rows == 0 || a.columns == 0) return {};
  const Eigen::MatrixXd matrix =
      Eigen::Map<const Eigen::MatrixXd, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>(
          a.data, static_cast<Index>(a.rows), static_cast<Index>(a.columns),
          {static_cast<Index>(a.column_step), static_cast<Index>(a.row_step)});
  const bool both = wanted == SingularVectors::both;
  if (!matrix.allFinite()) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::size_t rank = std::min(a.rows, a.columns);
    return {std::vector<double>(a.rows * rank, nan), std::vector<double>(rank, nan),
            std::vector<double>(both ? a.columns * rank : 0, nan)};
  }
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(
      matrix, Eigen::ComputeThinU | (both ? Eigen::ComputeThinV : Eigen::DecompositionOptions(0)));
  const Eigen::VectorXd& values = svd.singularValues();
  return {to_row_major(svd.matrixU()),
          {values.data(), values.data() + values.size()},
          both ? to_row_major(svd.matrixV()) : std::vector<double>()};
}

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

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
  // Tall matrices by Cholesky factors R of AᵀA, twice, which is mostly products. Q is then orthonormal to
  // rounding unless A is nearly singular.
  // Source  [Yamamoto, Nakatsukasa, Yanagisawa, Fukaya 2015] CholeskyQR2
  if (matrix.rows() >= 4 * matrix.cols() && least > 1) {
    // The rounding of the products alone may be as much.
    const double accurate = 0.25 * rounding(matrix.rows()) * static_cast<double>(least);
    ThinQr result{.basis = matrix, .triangle = {}};
    for (int pass = 0; pass < 2; ++pass) {
      const MatrixXd gram = product(result.basis.transpose(), result.basis);
      if (pass == 1 && (gram - MatrixXd::Identity(least, least)).norm() <= accurate) return result;
      const Eigen::LLT<MatrixXd> factor(gram);
      const MatrixXd triangle = factor.matrixU();
      const MatrixXd inverse =
          triangle.triangularView<Eigen::Upper>().solve(MatrixXd::Identity(least, least));
      // The product bounds the condition of the matrix, and stays below 1e7 where Q is accurate.
      if (factor.info() != Eigen::Success || !(triangle.norm() * inverse.norm() < 1e7)) break;
      result.basis = product(result.basis, inverse);
      if (pass == 0) {
        result.triangle = triangle;
      } else {
        result.triangle = (triangle * result.triangle).triangularView<Eigen::Upper>();
        return result;
      }
    }
  }
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

MatrixXd cholesky_factor(const MatrixXd& matrix) { return Eigen::LLT<MatrixXd>(matrix).matrixL(); }

VectorXd solve_positive(const MatrixXd& matrix, const VectorXd& right) {
  return Eigen::LLT<MatrixXd>(matrix).solve(right);
}

MatrixXd inverse_of(const MatrixXd& matrix) { return matrix.inverse(); }

VectorXd least_squares(const MatrixXd& matrix, const VectorXd& right) {
  return matrix.completeOrthogonalDecomposition().solve(right);
}

struct PivotedQr::Factors {
  Eigen::ColPivHouseholderQR<MatrixXd> of;
};

PivotedQr::PivotedQr(const MatrixXd& matrix)
    : factors_(std::make_unique<Factors>(Factors{Eigen::ColPivHouseholderQR<MatrixXd>(matrix)})) {}

PivotedQr::~PivotedQr() = default;

VectorXd PivotedQr::pivots() const { return factors_->of.matrixQR().diagonal().cwiseAbs(); }

MatrixXd PivotedQr::basis(Index columns) const {
  return factors_->of.householderQ() * MatrixXd::Identity(factors_->of.rows(), columns);
}

VectorXd PivotedQr::solve(const VectorXd& right) const { return factors_->of.solve(right); }

struct CompleteOrthogonal::Factors {
  Eigen::CompleteOrthogonalDecomposition<MatrixXd> of;
};

CompleteOrthogonal::CompleteOrthogonal(const MatrixXd& matrix, double tolerance) {
  auto factors = std::make_unique<Factors>();
  factors->of.setThreshold(tolerance);
  factors->of.compute(matrix);
  factors_ = std::move(factors);
}

CompleteOrthogonal::~CompleteOrthogonal() = default;

Index CompleteOrthogonal::rank() const { return factors_->of.rank(); }

MatrixXd CompleteOrthogonal::from_basis(MatrixXd matrix) const {
  matrix.applyOnTheLeft(factors_->of.householderQ());
  return matrix;
}

MatrixXd CompleteOrthogonal::to_basis(MatrixXd matrix) const {
  matrix.applyOnTheLeft(factors_->of.householderQ().adjoint());
  return matrix;
}

VectorXd CompleteOrthogonal::solve(const VectorXd& right) const { return factors_->of.solve(right); }

}  // namespace normscope
