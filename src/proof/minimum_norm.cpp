#include <normscope/proof/minimum_norm.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <normscope/core/error.hpp>

#include "active_set.hpp"

namespace normscope::proof {
namespace {

using Eigen::Index;
using Set = ActiveSet<double>;

/// Iterations without a shorter x after which rounding is assumed to cause a cycle.
constexpr std::size_t most_stalled = 10;

/// The active points of x, with a unit as long as the longest of them.
class WorkingSet {
 public:
  explicit WorkingSet(Index dimension) : dimension_(dimension), set_(dimension, 1, 1.0) {}

  [[nodiscard]] bool holds(std::uint64_t id) const { return set_.holds(id); }
  [[nodiscard]] Eigen::VectorXd point() const { return set_.point(); }

  /// Returns false if `point` lies in the affine hull of the others up to rounding.
  bool add(std::uint64_t id, const Eigen::VectorXd& point) {
    const double length = point.norm();
    // As long as the points; if it were much smaller, the sum of the weights would be lost to rounding.
    if (!(length <= 2.0 * unit_) && !lengthen(length)) return false;
    if (!set_.add(id, 0, point, set_.size() == 0 ? 1.0 : 0.0)) return false;
    points_.push_back(point);
    return true;
  }

  bool settle() {
    const std::vector<std::size_t> before = set_.rows();
    const bool sound = set_.settle();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < before.size() && kept < set_.rows().size(); ++i) {
      if (before[i] != set_.rows()[kept]) continue;
      std::swap(points_[kept++], points_[i]);
    }
    points_.resize(kept);
    return sound;
  }

  [[nodiscard]] std::vector<PointWeight> shares() const {
    std::vector<PointWeight> result;
    for (Index j = 0; j < set_.size(); ++j) {
      const double weight = set_.weights()[j];
      if (weight > 0.0) result.push_back({set_.rows()[static_cast<std::size_t>(j)], weight});
    }
    return result;
  }

 private:
  bool lengthen(double length) {
    if (!std::isfinite(length)) return false;
    unit_ = length;
    Set larger(dimension_, 1, unit_);
    for (Index j = 0; j < set_.size(); ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (!larger.add(set_.rows()[at], 0, points_[at], set_.weights()[j])) return false;
    }
    set_ = std::move(larger);
    return true;
  }

  Index dimension_;
  Set set_;
  double unit_ = 0.0;
  std::vector<Eigen::VectorXd> points_{};
};

}  // namespace

MinimumNorm minimum_norm_point(const Hull& hull, double tolerance, std::size_t iterations,
                               const Progress& progress) {
  NORMSCOPE_ASSERT(hull.dimension >= 1);
  const Index dimension = static_cast<Index>(hull.dimension);
  Eigen::VectorXd x = Eigen::VectorXd::Zero(dimension);
  Eigen::VectorXd point(dimension);
  const auto ask = [&] { return hull.least({x.data(), hull.dimension}, {point.data(), hull.dimension}); };
  MinimumNorm result;
  const std::uint64_t first = ask();
  double largest = point.norm();
  double shortest = largest;
  WorkingSet working_set(dimension);
  bool sound = working_set.add(first, point) && working_set.settle();
  x = point;
  for (std::size_t stalled = 0; sound && result.iterations < iterations; ++result.iterations) {
    const double square = x.squaredNorm();
    const std::uint64_t id = ask();
    largest = std::max(largest, point.norm());
    result.gap = square - x.dot(point);
    progress("nearing, digits", std::min(digits(result.gap / square), digits(tolerance)), digits(tolerance));
    const bool at_origin = std::isfinite(largest) &&
                           std::sqrt(square) <= 16.0 * std::numeric_limits<double>::epsilon() * largest;
    if (result.gap <= tolerance * square || at_origin) {
      result.converged = true;
      break;
    }
    if (working_set.holds(id) || !working_set.add(id, point)) break;
    sound = working_set.settle();
    if (!sound) break;
    x = working_set.point();
    const double length = x.norm();
    stalled = length < shortest ? 0 : stalled + 1;
    shortest = std::min(shortest, length);
    if (stalled > most_stalled) break;
  }
  progress("nearing, digits", digits(tolerance), digits(tolerance));
  result.point.assign(x.data(), x.data() + dimension);
  result.shares = working_set.shares();
  return result;
}

}  // namespace normscope::proof
