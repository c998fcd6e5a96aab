#include "rotary_uniform.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/numeric/rounding.hpp>

namespace normscope::selectability {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t swept_in_steps = 256;
constexpr std::size_t most_swept = 16384;
constexpr int steps = 40;
/// Of the dual, in parts of its size: at first and what each step leaves of it.
constexpr double first_smoothing = 0.1;
constexpr double less_smoothing = 0.8;
constexpr int exchanges = 60;

VectorXd query_of(const RotaryScores& scores, const VectorXd& u) {
  return scores.query * u + scores.query_constant;
}

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

  /// Shares that nearly maximize φ: of the context that gains most by it at the cost of the one that loses
  /// least, again and again.
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
      // d/ds of φ along e_up − e_down, whose square root is of a quadratic in s, by bisection.
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

  /// The query that the smoothed dual answers with.
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
  MatrixXd pulls_;       ///< Cᵀ g, a column each
  VectorXd constants_;   ///< cᵀ g
  VectorXd shares_;
};

/// At most this wide at every distance, by weights of this query's own.
double anywhere(const RotaryScores& scores, const VectorXd& u) {
  RotaryScores one = scores;
  one.query = MatrixXd::Zero(scores.dim(), 1);
  one.query_constant = query_of(scores, u);
  one.query_lost += rounding(scores.query.cols() + 1) * scores.query_size();
  return RotaryWeights(one, 0.0).spread();
}

/// The widest context of a query at every distance there is.
double widest(const RotaryScores& scores, const Sweep& sweep, const VectorXd& u) {
  const Ranges ranges = sweep.of(query_of(scores, u));
  return (ranges.middle + ranges.half).maxCoeff() + (ranges.half - ranges.middle).maxCoeff() +
         scores.slack(scores.distances);
}

}  // namespace

RotaryUniform most_uniform(const RotaryScores& scores, const RotaryWeights& weights) {
  const RotaryWeights::Query outside = weights.most_uniform();
  RotaryUniform result{.point = outside.point, .upper = outside.spread, .anywhere = outside.spread};
  // Without a constant the query is 0 for u = 0.
  if (scores.query_constant.squaredNorm() == 0.0 || !scores.knows_frequencies() || scores.distances < 3) {
    return result;
  }
  const Sweep some(scores, scattered_distances(1, scores.distances, swept_in_steps));
  Dual dual(scores);
  VectorXd u = outside.point;
  VectorXd best = u;
  double narrowest = -1.0;
  double smoothing = first_smoothing;
  for (int step = 0; step < steps; ++step) {
    RotaryContext context = widest_context(scores, some, u);
    if (narrowest < 0.0 || context.spread < narrowest) {
      narrowest = context.spread;
      best = u;
    }
    dual.add(std::move(context));
    dual.raise(smoothing * dual.size());
    if (const double value = dual.value(); value > result.lower) {
      result.lower = value;
      result.contexts = dual.contexts();
      result.shares.assign(dual.shares().begin(), dual.shares().end());
    }
    if (narrowest - result.lower <= 1e-6 * narrowest) break;
    u = dual.answer(smoothing * dual.size());
    smoothing *= less_smoothing;
  }
  result.lower = std::max(0.0, result.lower - scores.slack(scores.distances));
  // Contexts without a share prove nothing.
  for (std::size_t i = result.shares.size(); i-- > 0;) {
    if (result.shares[i] > 0.0) continue;
    result.shares.erase(result.shares.begin() + static_cast<std::ptrdiff_t>(i));
    result.contexts.erase(result.contexts.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const double everywhere = anywhere(scores, best);
  double within = everywhere;
  if (scores.bounded && scores.distances <= most_swept) {
    within = std::min(within, widest(scores, Sweep(scores, all_distances(0, scores.distances)), best));
  }
  result.anywhere = std::min(result.anywhere, everywhere);
  if (within < result.upper) {
    result.upper = within;
    result.point = best;
  }
  return result;
}

}  // namespace normscope::selectability
