#include "span.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/numeric/eigen/decompositions.hpp>

namespace normscope::selectability {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Rows folded into the triangle at a time.
constexpr std::size_t fold = 1024;

/// R with RᵀR = Σ z zᵀ, computed without squaring.
MatrixXd triangle_of_keys(const KeySet& key_set) {
  const Index width = static_cast<Index>(key_set.width());
  MatrixXd result(0, width);
  std::vector<double> z(key_set.width());
  for (std::size_t first = 0; first < key_set.size(); first += fold) {
    const Index count = static_cast<Index>(std::min(fold, key_set.size() - first));
    MatrixXd rows(result.rows() + count, width);
    rows.topRows(result.rows()) = result;
    for (Index i = 0; i < count; ++i) {
      key_set.centred(first + static_cast<std::size_t>(i), z);
      rows.row(result.rows() + i) = Eigen::Map<const Eigen::RowVectorXd>(z.data(), width);
    }
    result = triangle_of(rows);
  }
  return result;
}

/// The rounding of the common mean, in the units of the key set, with a margin.
double mean_rounding(const KeySet& key_set) {
  double far = 0.0;
  for (std::size_t i = 0; i < key_set.width(); ++i) {
    const double extent = key_set.extents()[i];
    // The mean of a constant column is not rounded.
    if (extent > 0.0) far = std::max(far, key_set.scaled(std::abs(key_set.center()[i]) + extent, i));
  }
  return 0x1p-51 * far * std::sqrt(static_cast<double>(key_set.size()));
}

}  // namespace

Span::Span(const KeySet& key_set, double rank_tolerance) {
  const Index width = static_cast<Index>(key_set.width());
  const MatrixXd triangle = triangle_of_keys(key_set);
  const PivotedQr factors(triangle.transpose());
  const VectorXd pivots = factors.pivots();
  const double least = std::max(rank_tolerance * pivots.maxCoeff(), mean_rounding(key_set));
  rank_ = std::max<Index>(1, (pivots.array() > least).count());
  if (rank_ < width) basis_ = factors.basis(rank_);
  triangle_ = rank_ == width ? triangle : triangle_of(triangle * basis_);
  triangle_ /= std::sqrt(static_cast<double>(key_set.size()));
}

VectorXd Span::whitened(const VectorXd& vector) const {
  VectorXd result = basis_.size() == 0 ? vector : VectorXd(basis_.transpose() * vector);
  triangle_.transpose().triangularView<Eigen::Lower>().solveInPlace(result);
  return result;
}

VectorXd Span::query(const VectorXd& direction) const {
  const VectorXd result = triangle_.triangularView<Eigen::Upper>().solve(direction);
  return basis_.size() == 0 ? result : VectorXd(basis_ * result);
}

VectorXd Span::inside(const VectorXd& query) const {
  return basis_.size() == 0 ? query : VectorXd(basis_ * (basis_.transpose() * query));
}

}  // namespace normscope::selectability
