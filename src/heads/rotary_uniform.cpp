#include "rotary_search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <normscope/core/rounding.hpp>

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t swept_in_steps = 256;
constexpr int rounds = 5;
constexpr int steps = 12;
/// Distances added per iteration, for high and for low scores each.
constexpr std::size_t added = 24;
/// No distances are added if considering all distances increases the spread by less than this fraction.
constexpr double enough = 1e-3;
/// Smoothing of the dual relative to its size: initially, and the factor of each decrease.
constexpr double first_smoothing = 0.1;
constexpr double less_smoothing = 0.8;
constexpr int exchanges = 60;

/// The dual over the contexts found so far: φ(λ) = cᵀ G λ − √(|Cᵀ G λ|² + δ²).
class Dual {
 public:
  explicit Dual(const RotaryScores& scores) : scores_(scores) {}

  void add(RotaryContext context) {
    const VectorXd g = spread_gradient(scores_, context);
    const Index last = pulls_.cols();
    pulls_.conservativeResize(scores_.query.cols(), last + 1);
    pulls_.col(last) = scores_.query.transpose() * g;
    constants_.conservativeResize(last + 1);
    constants_[last] = scores_.query_constant.dot(g);
    shares_.conservativeResize(last + 1);
    shares_[last] = last == 0 ? 1.0 : 0.0;
    contexts_.push_back(std::move(context));
  }

  /// Weights that nearly maximize φ, by repeatedly moving weight from the context with the smallest partial
  /// derivative to the one with the largest.
  void raise(double smoothing) {
    const MatrixXd products = pulls_.transpose() * pulls_;
    for (int i = 0; i < exchanges; ++i) {
      const VectorXd along = products * shares_;
      const double length = std::sqrt(shares_.dot(along) + smoothing * smoothing);
      const VectorXd slope = constants_ - along / std::max(length, 1e-300);
      Index up = 0;
      Index down = -1;
      const double best = slope.maxCoeff(&up);
      for (Index k = 0; k < shares_.size(); ++k) {
        if (shares_[k] > 0.0 && (down < 0 || slope[k] < slope[down])) down = k;
      }
      if (best - slope[down] <= 1e-12 * std::abs(best)) return;
      // Solves dφ/ds = 0 along e_up − e_down by bisection; the term under the root is quadratic in s.
      const double linear = constants_[up] - constants_[down];
      const double a = products(up, up) - 2.0 * products(up, down) + products(down, down);
      const double b = along[up] - along[down];
      const auto rises = [&](double s) {
        const double root = std::sqrt(std::max(length * length + s * (2.0 * b + s * a), 1e-300));
        return linear - (b + s * a) / root > 0.0;
      };
      double low = 0.0;
      double high = shares_[down];
      if (!rises(high)) {
        for (int k = 0; k < 40; ++k) {
          const double middle = 0.5 * (low + high);
          (rises(middle) ? low : high) = middle;
        }
      }
      shares_[up] += high;
      shares_[down] = high == shares_[down] ? 0.0 : shares_[down] - high;
    }
  }

  /// The query that attains the smoothed dual.
  [[nodiscard]] VectorXd answer(double smoothing) const {
    const VectorXd pull = pulls_ * shares_;
    const double length = std::sqrt(pull.squaredNorm() + smoothing * smoothing);
    return length > 0.0 ? VectorXd(-pull / length) : VectorXd(VectorXd::Zero(pull.size()));
  }
  /// φ without smoothing: a lower bound.
  [[nodiscard]] double value() const { return constants_.dot(shares_) - (pulls_ * shares_).norm(); }
  [[nodiscard]] double size() const { return pulls_.colwise().norm().maxCoeff(); }
  [[nodiscard]] const VectorXd& shares() const { return shares_; }
  [[nodiscard]] const std::vector<RotaryContext>& contexts() const { return contexts_; }

 private:
  const RotaryScores& scores_;
  std::vector<RotaryContext> contexts_;
  MatrixXd pulls_;      ///< Cᵀ g, a column each
  VectorXd constants_;  ///< cᵀ g
  VectorXd shares_;
};

/// An upper bound of a query's spread, and its growth per unit of length by which the query's point moves.
struct SpreadBound {
  WeightProof proof{};
  double sensitivity = 0.0;
};

/// An upper bound of the spread over every distance, by weights for this query.
SpreadBound bound_anywhere(const RotaryScores& scores, const VectorXd& u) {
  RotaryScores one = scores;
  one.query = MatrixXd::Zero(scores.dim(), 1);
  one.query_constant = scores.query_at(u);
  one.query_lost += rounding(scores.query.cols() + 1) * scores.query_size();
  const RotaryWeights weights(one, 0.0);
  return {weights.proof(0), weights.sensitivity(scores.query)};
}

/// The widest context of a query over all distances.
double widest_over(const RotaryScores& scores, const Sweep& sweep, const VectorXd& u) {
  const Ranges ranges = sweep.of(scores.query_at(u));
  return (ranges.middle + ranges.half).maxCoeff() + (ranges.half - ranges.middle).maxCoeff() +
         scores.slack(scores.distances);
}

/// The state of `most_uniform`.
class Descent {
 public:
  Descent(const RotaryScores& scores, VectorXd start)
      : scores_(scores), dual_(scores), u_(start), best_(std::move(start)) {}

  /// Frank–Wolfe steps over the given distances; returns whether both bounds meet there.
  bool step(const Sweep& sweep, int count) {
    // The optimum changes with the distances.
    narrowest_ = widest_context(scores_, sweep, best_).spread;
    for (int i = 0; i < count; ++i) {
      RotaryContext context = widest_context(scores_, sweep, u_);
      if (context.spread < narrowest_) {
        narrowest_ = context.spread;
        best_ = u_;
      }
      add(std::move(context));
      if (narrowest_ - lower_ <= near * narrowest_) return true;
      u_ = dual_.answer(smoothing_ * dual_.size());
      smoothing_ *= less_smoothing;
    }
    return false;
  }
  void add(RotaryContext context) {
    dual_.add(std::move(context));
    dual_.raise(smoothing_ * dual_.size());
    if (const double value = dual_.value(); value > lower_) {
      lower_ = value;
      contexts_ = dual_.contexts();
      shares_ = dual_.shares();
    }
  }
  /// Resets the smoothing to its initial value.
  void restart() { smoothing_ = std::max(smoothing_, again_smoothing); }

  [[nodiscard]] const VectorXd& best() const { return best_; }
  [[nodiscard]] double narrowest() const { return narrowest_; }
  [[nodiscard]] double lower() const { return lower_; }

  /// The contexts with positive weight, which prove `lower`.
  void fill(RotaryUniform& result) const {
    result.lower = std::max(0.0, lower_ - scores_.slack(scores_.distances));
    if (result.lower == 0.0) return;
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
      const double share = shares_[static_cast<Index>(i)];
      if (share == 0.0) continue;
      result.shares.push_back(share);
      result.contexts.push_back(contexts_[i]);
    }
  }

 private:
  static constexpr double near = 1e-6;
  static constexpr double again_smoothing = 0.01;

  const RotaryScores& scores_;
  Dual dual_;
  VectorXd u_;
  VectorXd best_;
  double narrowest_ = 0.0;
  double lower_ = 0.0;
  double smoothing_ = first_smoothing;
  std::vector<RotaryContext> contexts_;
  VectorXd shares_;
};

/// The distances with the `count` highest and the `count` lowest scores under a query.
std::vector<std::size_t> extreme_distances(const RotaryScores& scores, const Sweep& sweep, const VectorXd& u,
                                           std::size_t count) {
  const Ranges ranges = sweep.of(scores.query_at(u));
  std::vector<std::size_t> result;
  for (const double sign : {1.0, -1.0}) {
    const VectorXd height = ranges.half + sign * ranges.middle;
    std::vector<Index> order(static_cast<std::size_t>(height.size()));
    std::iota(order.begin(), order.end(), Index{0});
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
    std::partial_sort(order.begin(), end, order.end(), [&](Index a, Index b) {
      return height[a] != height[b] ? height[a] > height[b] : a < b;
    });
    for (auto at = order.begin(); at != end; ++at) {
      result.push_back(sweep.distances()[static_cast<std::size_t>(*at)]);
    }
  }
  return result;
}

}  // namespace

RotaryUniform most_uniform(const RotaryScores& scores, const RotaryWeights& weights) {
  const RotaryWeights::Query outside = weights.most_uniform();
  RotaryUniform result{.point = outside.point,
                       .upper = outside.spread,
                       .anywhere = outside.spread,
                       .anywhere_point = outside.point,
                       .anywhere_proof = weights.proof(0),
                       .upper_sensitivity = weights.sensitivity(scores.query)};
  result.anywhere_sensitivity = result.upper_sensitivity;
  result.anywhere_proof.spread = outside.spread;
  // If c is 0, u = 0 gives the query 0.
  if (scores.query_constant.squaredNorm() == 0.0 || !scores.knows_frequencies() || scores.distances < 3) {
    return result;
  }
  Descent descent(scores, outside.point);
  std::vector<std::size_t> some = scattered_distances(1, scores.distances, swept_in_steps);
  const Sweep whole(scores, scattered_distances(1, scores.distances, most_swept));
  for (int round = 0; round < rounds; ++round) {
    descent.step(Sweep(scores, some), steps);
    RotaryContext widest = widest_context(scores, whole, descent.best());
    if (widest.spread <= descent.narrowest() * (1.0 + enough)) break;
    // Distances not considered so far give a wider context; add them.
    const std::vector<std::size_t> more = extreme_distances(scores, whole, descent.best(), added);
    some.insert(some.end(), more.begin(), more.end());
    std::sort(some.begin(), some.end());
    some.erase(std::unique(some.begin(), some.end()), some.end());
    descent.add(std::move(widest));
    descent.restart();
  }
  descent.fill(result);
  const SpreadBound everywhere = bound_anywhere(scores, descent.best());
  double within = everywhere.proof.spread;
  if (scores.bounded && scores.distances <= most_swept) {
    const Sweep all(scores, all_distances(0, scores.distances));
    within = std::min(within, widest_over(scores, all, descent.best()));
  }
  if (everywhere.proof.spread < result.anywhere) {
    result.anywhere = everywhere.proof.spread;
    result.anywhere_point = descent.best();
    result.anywhere_proof = everywhere.proof;
    result.anywhere_sensitivity = everywhere.sensitivity;
  }
  if (within < result.upper) {
    result.upper = within;
    result.point = descent.best();
    result.upper_sensitivity = everywhere.sensitivity;
  }
  return result;
}

}  // namespace normscope::heads
