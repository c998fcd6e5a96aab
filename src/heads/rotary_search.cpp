#include "rotary_search.hpp"

#include <algorithm>

#include <normscope/core/random.hpp>

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Distances used to improve a start, before all distances are.
constexpr std::size_t explored = 512;
/// Distances whose own best query is a candidate for a start, and number of those used.
constexpr std::size_t candidates = 64;
constexpr std::size_t starts = 4;
constexpr std::size_t random_starts = 12;
/// Contexts that are improved over all distances.
constexpr std::size_t finished = 2;
constexpr int most_sweeps = 12;
constexpr int most_steps = 60;
constexpr int power_steps = 8;
constexpr double gain = 1e-7;

/// u and the keys in turn, distances as they are.
void climb(const RotaryScores& scores, RotaryContext& context) {
  for (int step = 0; step < most_steps; ++step) {
    const VectorXd g = spread_gradient(scores, context);
    const VectorXd pull = scores.query.transpose() * g;
    const double length = pull.norm();
    if (length > 0.0) context.query_point = pull / length;
    const VectorXd query = scores.query_at(context.query_point);
    context.high = best_key(scores, query, context.high_distance, 1.0);
    context.low = best_key(scores, query, context.low_distance, -1.0);
    const double spread = query.dot(spread_gradient(scores, context));
    const bool done = spread <= context.spread * (1.0 + gain);
    context.spread = std::max(context.spread, spread);
    if (done) return;
  }
}

RotaryContext improved(const RotaryScores& scores, const Sweep& sweep, RotaryContext context) {
  for (int round = 0; round < most_sweeps; ++round) {
    RotaryContext next = widest_context(scores, sweep, context.query_point);
    climb(scores, next);
    if (next.spread <= context.spread * (1.0 + gain)) break;
    context = std::move(next);
  }
  return context;
}

}  // namespace

VectorXd best_key(const RotaryScores& scores, const VectorXd& query, std::size_t t, double sign) {
  const VectorXd pull = scores.key.transpose() * turned(scores, query, -static_cast<double>(t));
  const double length = pull.norm();
  return length > 0.0 ? VectorXd(sign / length * pull) : VectorXd(VectorXd::Zero(pull.size()));
}

VectorXd spread_gradient(const RotaryScores& scores, const RotaryContext& context) {
  const VectorXd constant = scores.turning_constant();
  const auto key_at = [&](const VectorXd& v, std::size_t t) -> VectorXd {
    return turned(scores, scores.key * v + constant, static_cast<double>(t));
  };
  return key_at(context.high, context.high_distance) - key_at(context.low, context.low_distance);
}

RotaryContext widest_context(const RotaryScores& scores, const Sweep& sweep, const VectorXd& query_point) {
  const VectorXd query = scores.query_at(query_point);
  const Ranges ranges = sweep.of(query);
  const VectorXd high = ranges.middle + ranges.half;
  const VectorXd low = ranges.middle - ranges.half;
  Index first_high = 0;
  Index first_low = 0;
  (void)high.maxCoeff(&first_high);
  (void)low.minCoeff(&first_low);
  if (first_high == first_low) {
    // Both are at the same distance, so one of them takes its second-best.
    const auto best_but = [&](const VectorXd& values, double sign, Index taken) {
      Index best = taken == 0 ? 1 : 0;
      for (Index i = 0; i < values.size(); ++i) {
        if (i != taken && sign * values[i] > sign * values[best]) best = i;
      }
      return best;
    };
    const Index next_high = best_but(high, 1.0, first_high);
    const Index next_low = best_but(low, -1.0, first_low);
    if (high[next_high] - low[first_low] > high[first_high] - low[next_low]) {
      first_high = next_high;
    } else {
      first_low = next_low;
    }
  }
  RotaryContext result{.query_point = query_point,
                       .high_distance = sweep.distances()[static_cast<std::size_t>(first_high)],
                       .low_distance = sweep.distances()[static_cast<std::size_t>(first_low)],
                       .spread = high[first_high] - low[first_low]};
  result.high = best_key(scores, query, result.high_distance, 1.0);
  result.low = best_key(scores, query, result.low_distance, -1.0);
  return result;
}

Sharpness sharpness_at(const RotaryScores& scores, std::size_t t, VectorXd& u) {
  if (u.size() == 0) u = VectorXd::LinSpaced(scores.query.cols(), 1.0, 1.5).normalized();
  const double at = static_cast<double>(t);
  VectorXd keys;
  for (int step = 0; step < power_steps; ++step) {
    keys = scores.key.transpose() * turned(scores, scores.query_at(u), -at);
    const VectorXd next = scores.query.transpose() * turned(scores, scores.key * keys, at);
    if (!(next.norm() > 0.0)) break;
    u = next.normalized();
  }
  const VectorXd back = turned(scores, scores.query_at(u), -at);
  return {.spread = 2.0 * (scores.key.transpose() * back).norm(), .middle = back.dot(scores.key_constant)};
}

std::optional<RotaryContext> sharpest_context(const RotaryScores& scores) {
  const std::size_t end = scores.distances;
  if (end < 3 || !scores.knows_frequencies()) return {};
  const Sweep some(scores, scattered_distances(1, end, explored));
  struct RatedDistance {
    double sharpness;
    VectorXd u;
  };
  std::vector<RatedDistance> found;
  VectorXd u;
  for (const std::size_t t : scattered_distances(1, end, candidates)) {
    const double sharpness = sharpness_at(scores, t, u).spread;
    found.push_back({sharpness, u});
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(starts, found.size()));
  std::partial_sort(found.begin(), found.begin() + count, found.end(),
                    [](const RatedDistance& a, const RatedDistance& b) { return a.sharpness > b.sharpness; });
  std::vector<RotaryContext> contexts;
  const auto try_from = [&](const VectorXd& start) {
    contexts.push_back(improved(scores, some, {.query_point = start, .spread = -1.0}));
  };
  for (std::ptrdiff_t i = 0; i < count; ++i) try_from(found[static_cast<std::size_t>(i)].u);
  // Constants create more local maxima, so random starts are added if there are any.
  if (scores.query_constant.squaredNorm() > 0.0 || scores.turning_constant().squaredNorm() > 0.0) {
    Random random(1);
    for (std::size_t i = 0; i < random_starts; ++i) {
      VectorXd start(scores.query.cols());
      for (double& value : start) value = random.normal();
      try_from(start.normalized());
    }
  }
  std::stable_sort(contexts.begin(), contexts.end(),
                   [](const RotaryContext& a, const RotaryContext& b) { return a.spread > b.spread; });
  if (some.distances().size() == end - 1) return contexts.front();
  const Sweep all(scores, scattered_distances(1, end, most_swept));
  RotaryContext best{.spread = -1.0};
  for (std::size_t i = 0; i < std::min(finished, contexts.size()); ++i) {
    RotaryContext context = improved(scores, all, std::move(contexts[i]));
    if (context.spread > best.spread) best = std::move(context);
  }
  return best;
}

}  // namespace normscope::heads
