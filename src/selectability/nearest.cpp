#include "search.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/selectability/select.hpp>

#include "key_set.hpp"

namespace normscope::selectability {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Cosine between the query and the nearest key below which the plain solution is refined.
constexpr double near_the_hull = 1e-7;
/// Smallest weight for which a key counts as inside the hull despite rounding.
constexpr double safe_weight = 1e-6;
/// Each refinement step gains the digits of a double minus those lost to the condition of the points.
constexpr int refinements = 4;

/// z_j − z_i, each entry as a pair of numbers.
std::vector<DoubleDouble> difference(const KeySet& key_set, std::size_t j, std::size_t i) {
  const std::span<const double> a = key_set.keys().row(key_set.row(j));
  const std::span<const double> b = key_set.keys().row(key_set.row(i));
  std::vector<DoubleDouble> result(a.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    const DoubleDouble exact = two_sum(a[k], -b[k]);
    result[k] = {key_set.scaled(exact.high, k), key_set.scaled(exact.low, k)};
  }
  return result;
}

VectorXd to_doubles(const std::vector<DoubleDouble>& values) {
  VectorXd result(static_cast<Index>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) result[static_cast<Index>(i)] = values[i].value();
  return result;
}

/// The point of the affine hull of the active keys that is nearest to the origin, and its weights.
struct Refined {
  VectorXd point{};
  VectorXd weights{};
};

/// Solves Dμ ≈ −b in the least-squares sense, for a base b and the differences D to the other keys; each step
/// uses the residual b + Dμ in twice the precision.
Refined refine(const std::vector<std::vector<DoubleDouble>>& carriers) {
  const Index width = static_cast<Index>(carriers[0].size());
  const Index count = static_cast<Index>(carriers.size()) - 1;
  MatrixXd differences(width, count);
  for (Index j = 0; j < count; ++j) {
    differences.col(j) = to_doubles(carriers[static_cast<std::size_t>(j) + 1]) - to_doubles(carriers[0]);
  }
  Refined result{.point = to_doubles(carriers[0]), .weights = VectorXd::Ones(count + 1)};
  if (count == 0) return result;
  const PivotedQr factors(differences);
  // Each entry of μ is a pair; the second number holds what a double cannot.
  VectorXd high = VectorXd::Zero(count);
  VectorXd low = VectorXd::Zero(count);
  for (int round = 0; round < refinements; ++round) {
    const VectorXd step = factors.solve(-result.point);
    if (!step.allFinite()) break;
    for (Index j = 0; j < count; ++j) {
      const DoubleDouble sum = two_sum(high[j], step[j]);
      const DoubleDouble kept = two_sum(sum.high, low[j] + sum.low);
      high[j] = kept.high;
      low[j] = kept.low;
    }
    for (Index i = 0; i < width; ++i) {
      const DoubleDouble base = carriers[0][static_cast<std::size_t>(i)];
      ExactSum total;
      total.add(base, 1.0);
      for (Index j = 0; j < count; ++j) {
        const DoubleDouble carrier = carriers[static_cast<std::size_t>(j) + 1][static_cast<std::size_t>(i)];
        for (const double weight : {high[j], low[j]}) {
          total.add(carrier, weight);
          total.add(base, -weight);
        }
      }
      result.point[i] = total.result().value;
    }
  }
  result.weights[0] = 1.0 - high.sum();
  result.weights.tail(count) = high;
  return result;
}

/// The state of the computation for one key.
class Case {
 public:
  Case(const KeySet& key_set, const Span& span, std::size_t place, const std::vector<std::size_t>& others,
       double tolerance)
      : key_set_(key_set), span_(span), place_(place), others_(others), tolerance_(tolerance) {}

  [[nodiscard]] Nearest solve() {
    // Whether the origin is inside depends neither on the scale of the axes nor on the lengths of the points;
    // the precision of the test depends on both.
    MatrixXd points(span_.rank(), static_cast<Index>(others_.size()));
    VectorXd lengths(points.cols());
    for (Index j = 0; j < points.cols(); ++j) {
      points.col(j) =
          span_.whitened(to_doubles(difference(key_set_, others_[static_cast<std::size_t>(j)], place_)));
      lengths[j] = points.col(j).norm();
      // A key that differs only outside the span is at the origin.
      if (!(lengths[j] > 0.0)) lengths[j] = 1.0;
      points.col(j) /= lengths[j];
    }
    const auto least = [&points](std::span<const double> direction, std::span<double> point) {
      const Eigen::Map<const VectorXd> along(direction.data(), points.rows());
      Index best = 0;
      (points.transpose() * along).minCoeff(&best);
      Eigen::Map<VectorXd>(point.data(), points.rows()) = points.col(best);
      return static_cast<std::uint64_t>(best);
    };
    const proof::MinimumNorm found = proof::minimum_norm_point(
        {.dimension = static_cast<std::size_t>(span_.rank()), .least = least}, 1e-10);
    const VectorXd point = Eigen::Map<const VectorXd>(found.point.data(), points.rows());
    if (point.norm() > near_the_hull) {
      result_.kind = Nearest::Kind::outside;
      set_query(-span_.query(point));
      return result_;
    }
    std::vector<proof::PointWeight> shares = found.shares;
    double lightest = 1.0;
    for (proof::PointWeight& share : shares) {
      lightest = std::min(lightest, share.weight);
      share.weight /= lengths[static_cast<Index>(share.id)];
    }
    set_weights(shares);
    const bool deep =
        static_cast<Index>(shares.size()) == span_.rank() + 1 && lightest > safe_weight && is_near();
    if (!deep) look_closer(std::move(shares), -span_.query(point));
    if (result_.kind != Nearest::Kind::outside && is_near()) result_.kind = Nearest::Kind::inside;
    return result_;
  }

 private:
  /// Also requires each column to be close, so that a column of small extent counts like any other.
  [[nodiscard]] bool is_near() const {
    return result_.residual <= tolerance_ * key_set_.scale() &&
           are_none(verified_distances(key_set_.keys(), key_set_.row(place_), result_.weights),
                    key_set_.extents(), tolerance_);
  }

  void set_query(VectorXd query) {
    const double length = query.norm();
    result_.query.clear();
    if (!(length > 0.0) || !std::isfinite(length)) return;
    query /= length;
    result_.query.assign(query.data(), query.data() + query.size());
  }

  /// Converts weights on positions in `others` to weights on rows and keeps them if they are better.
  void set_weights(const std::vector<proof::PointWeight>& shares) {
    CompensatedSum total;
    for (const proof::PointWeight& share : shares) total.add(share.weight);
    std::vector<proof::PointWeight> weights;
    for (const proof::PointWeight& share : shares) {
      const double weight = share.weight / total.value();
      if (weight > 0.0) weights.push_back({key_set_.row(others_[share.id]), weight});
    }
    const double residual = verified_residual(key_set_.keys(), key_set_.row(place_), weights);
    if (!result_.weights.empty() && residual >= result_.residual) return;
    result_.weights = std::move(weights);
    result_.residual = residual;
  }

  void look_closer(std::vector<proof::PointWeight> shares, const VectorXd& plain) {
    std::vector<std::vector<DoubleDouble>> carriers;
    carriers.reserve(shares.size());
    for (const proof::PointWeight& share : shares)
      carriers.push_back(difference(key_set_, others_[share.id], place_));
    Refined refined = refine(carriers);
    // Removes keys that are active only by rounding, the most negative weight first.
    Index worst = 0;
    while (carriers.size() > 1 && refined.weights.minCoeff(&worst) < 0.0) {
      carriers.erase(carriers.begin() + worst);
      shares.erase(shares.begin() + worst);
      refined = refine(carriers);
    }
    for (const VectorXd& query : {VectorXd(-span_.inside(refined.point)), plain}) {
      set_query(query);
      if (beats_all()) {
        result_.kind = Nearest::Kind::outside;
        return;
      }
    }
    for (std::size_t j = 0; j < shares.size(); ++j) {
      shares[j].weight = std::max(0.0, refined.weights[static_cast<Index>(j)]);
    }
    set_weights(shares);
  }

  [[nodiscard]] bool beats_all() const {
    if (result_.query.empty()) return false;
    return std::all_of(others_.begin(), others_.end(), [this](std::size_t other) {
      return key_set_.lead(result_.query, place_, other).low() > 0.0;
    });
  }

  const KeySet& key_set_;
  const Span& span_;
  std::size_t place_;
  const std::vector<std::size_t>& others_;
  double tolerance_;
  Nearest result_{};
};

}  // namespace

Nearest nearest(const KeySet& key_set, const Span& span, std::size_t place,
                const std::vector<std::size_t>& others, double tolerance) {
  return Case(key_set, span, place, others, tolerance).solve();
}

}  // namespace normscope::selectability
