#include <normscope/convex/minimum_norm.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Dense>

#include <normscope/core/assert.hpp>

namespace normscope::convex {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// The points that carry x, and the Cholesky factor of their Gram matrix plus `unit` in every entry: with
/// it the nearest point of their affine hull is one solve, also where that hull holds the origin.
class Corral {
 public:
  Corral(std::size_t dimension, double unit)
      : unit_(unit), points_(static_cast<Index>(dimension), 8), factor_(MatrixXd::Zero(8, 8)) {}

  [[nodiscard]] Index size() const { return static_cast<Index>(shares_.size()); }
  [[nodiscard]] const std::vector<Share>& shares() const { return shares_; }
  [[nodiscard]] VectorXd point() const { return points_.leftCols(size()) * weights_; }
  [[nodiscard]] bool holds(std::uint64_t id) const {
    return std::any_of(shares_.begin(), shares_.end(), [id](const Share& share) { return share.id == id; });
  }

  /// False when `point` lies in the affine hull of the others to rounding.
  bool add(std::uint64_t id, const VectorXd& point) {
    if (size() == points_.cols()) {
      points_.conservativeResize(Eigen::NoChange, 2 * size());
      factor_.conservativeResize(2 * size(), 2 * size());
    }
    const Index k = size();
    points_.col(k) = point;
    if (point.squaredNorm() > 4.0 * unit_) {
      // As large as the Gram matrix, or the sum constraint drowns in it.
      unit_ = point.squaredNorm();
      for (Index i = 0; i < k; ++i) {
        if (!extend_factor(i)) return false;
      }
    }
    if (!extend_factor(k)) return false;
    shares_.push_back({id, 0.0});
    weights_.conservativeResize(k + 1);
    weights_[k] = k == 0 ? 1.0 : 0.0;
    return true;
  }

  /// Moves the weights to the nearest point of the affine hull, dropping points on the way whose weight
  /// would turn negative. False when rounding leaves no such point.
  bool settle() {
    while (true) {
      const Index k = size();
      VectorXd nearest = VectorXd::Ones(k);
      const auto triangle = factor_.topLeftCorner(k, k).triangularView<Eigen::Lower>();
      triangle.solveInPlace(nearest);
      triangle.transpose().solveInPlace(nearest);
      const double total = nearest.sum();
      if (!std::isfinite(total) || total <= 0.0) return false;
      nearest /= total;
      if (nearest.minCoeff() > 0.0) {
        weights_ = nearest;
        return true;
      }
      double step = 1.0;
      Index leaving = -1;
      for (Index i = 0; i < k; ++i) {
        if (nearest[i] > 0.0) continue;
        const double reach = weights_[i] / (weights_[i] - nearest[i]);
        if (leaving < 0 || reach < step) {
          step = reach;
          leaving = i;
        }
      }
      if (k == 1 || !std::isfinite(step)) return false;
      weights_ += step * (nearest - weights_);
      weights_[leaving] = 0.0;
      if (!drop_zeros()) return false;
    }
  }

  /// Solves for the weights once more without the Gram matrix, whose condition is squared: where the
  /// origin lies in the hull, x comes an order of magnitude nearer. Keeps only weights that do so.
  void polish() {
    const Index k = size();
    MatrixXd system(points_.rows() + 1, k);
    system.topRows(points_.rows()) = points_.leftCols(k);
    system.bottomRows(1).setConstant(std::sqrt(unit_));
    VectorXd target = VectorXd::Zero(points_.rows() + 1);
    target[points_.rows()] = std::sqrt(unit_);
    VectorXd better = system.colPivHouseholderQr().solve(target);
    if (!better.allFinite() || better.minCoeff() < 0.0 || better.sum() <= 0.0) return;
    better /= better.sum();
    if ((points_.leftCols(k) * better).norm() < point().norm()) weights_ = better;
  }

  [[nodiscard]] std::vector<Share> positive_shares() const {
    std::vector<Share> result;
    for (Index i = 0; i < size(); ++i) {
      if (weights_[i] > 0.0) result.push_back({shares_[static_cast<std::size_t>(i)].id, weights_[i]});
    }
    return result;
  }

 private:
  /// Row k of the factor from column k of the points.
  bool extend_factor(Index k) {
    VectorXd row = points_.leftCols(k).transpose() * points_.col(k);
    row.array() += unit_;
    if (k > 0) factor_.topLeftCorner(k, k).triangularView<Eigen::Lower>().solveInPlace(row);
    const double whole = points_.col(k).squaredNorm() + unit_;
    const double left = whole - row.squaredNorm();
    if (!(left > 4.0 * std::numeric_limits<double>::epsilon() * whole)) return false;
    factor_.row(k).head(k) = row;
    factor_(k, k) = std::sqrt(left);
    return true;
  }

  bool drop_zeros() {
    Index kept = 0;
    Index first_moved = -1;
    for (Index i = 0; i < size(); ++i) {
      if (weights_[i] <= 0.0) {
        if (first_moved < 0) first_moved = i;
        continue;
      }
      if (kept != i) points_.col(kept) = points_.col(i);
      shares_[static_cast<std::size_t>(kept)] = shares_[static_cast<std::size_t>(i)];
      weights_[kept++] = weights_[i];
    }
    shares_.resize(static_cast<std::size_t>(kept));
    weights_.conservativeResize(kept);
    for (Index i = first_moved; i >= 0 && i < kept; ++i) {
      if (!extend_factor(i)) return false;
    }
    return kept > 0;
  }

  double unit_;
  MatrixXd points_;
  MatrixXd factor_;
  VectorXd weights_{};
  std::vector<Share> shares_{};
};

/// Decimal digits of a number in (0, 1].
std::size_t digits(double value) {
  return value > 0.0 && value < 1.0 ? static_cast<std::size_t>(-std::log10(value)) : 0;
}

}  // namespace

MinimumNorm minimum_norm_point(const Hull& hull, double tolerance, std::size_t iterations,
                               const Progress& progress) {
  NORMSCOPE_ASSERT(hull.dimension >= 1);
  const Index dimension = static_cast<Index>(hull.dimension);
  VectorXd x = VectorXd::Zero(dimension);
  VectorXd point(dimension);
  const auto ask = [&] { return hull.least({x.data(), hull.dimension}, {point.data(), hull.dimension}); };
  MinimumNorm result;
  const std::uint64_t first = ask();
  double largest = point.norm();
  Corral corral(hull.dimension, std::max(point.squaredNorm(), std::numeric_limits<double>::min()));
  bool sound = corral.add(first, point);
  x = point;
  for (; sound && result.iterations < iterations; ++result.iterations) {
    const double square = x.squaredNorm();
    const std::uint64_t id = ask();
    largest = std::max(largest, point.norm());
    result.gap = square - x.dot(point);
    progress("nearing, digits", std::min(digits(result.gap / square), digits(tolerance)), digits(tolerance));
    const bool at_origin = std::sqrt(square) <= 16.0 * std::numeric_limits<double>::epsilon() * largest;
    if (result.gap <= tolerance * square || at_origin) {
      result.converged = true;
      break;
    }
    if (corral.holds(id) || !corral.add(id, point)) break;
    sound = corral.settle();
    x = corral.point();
    // Rounding alone is left when x no longer comes nearer.
    if (x.squaredNorm() >= square) break;
  }
  progress("nearing, digits", digits(tolerance), digits(tolerance));
  corral.polish();
  x = corral.point();
  result.point.assign(x.data(), x.data() + dimension);
  result.shares = corral.positive_shares();
  return result;
}

}  // namespace normscope::convex
