#include "rotary_search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/random.hpp>

#include "rotary_scores.hpp"

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Distances whose own best query is a start, without constants and with them: they create more local maxima.
constexpr std::size_t starts = 4;
constexpr std::size_t shifted_starts = 12;
constexpr std::size_t random_starts = 24;
/// Contexts that are improved over all distances.
constexpr std::size_t finished = 4;
constexpr std::size_t shifted_finished = 8;
/// Sweeps from each start without constants, and from those that are improved over all distances.
constexpr int first_sweeps = 2;
constexpr int most_sweeps = 12;
constexpr int most_steps = 60;
constexpr int sharpness_steps = 10;
constexpr int power_steps = 8;
/// Gains that end the search from a start without constants, and any other.
constexpr double first_gain = 1e-4;
constexpr double last_gain = 1e-7;

/// R_t of one distance, for repeated use.
struct Turned {
  Turned(const RotaryScores& scores, std::size_t t) {
    for (const double frequency : scores.frequencies) {
      cosines.push_back(std::cos(static_cast<double>(t) * frequency));
      sines.push_back(std::sin(static_cast<double>(t) * frequency));
    }
  }

  /// R_t x, or R_tᵀ x.
  [[nodiscard]] VectorXd operator()(VectorXd x, bool back) const {
    for (std::size_t j = 0; j < cosines.size(); ++j) {
      const auto at = static_cast<Index>(2 * j);
      const double sine = back ? -sines[j] : sines[j];
      const double first = x[at];
      x[at] = cosines[j] * first - sine * x[at + 1];
      x[at + 1] = sine * first + cosines[j] * x[at + 1];
    }
    return x;
  }

  std::vector<double> cosines, sines;
};

VectorXd along(VectorXd pull, double sign) {
  const double length = pull.norm();
  return length > 0.0 ? VectorXd(sign / length * pull) : VectorXd(VectorXd::Zero(pull.size()));
}

/// u and the keys in turn, distances as they are, until the spread gains less than this part of it.
void climb(const RotaryScores& scores, RotaryContext& context, double least_gain) {
  const Turned high(scores, context.high_distance);
  const Turned low(scores, context.low_distance);
  const VectorXd constant = scores.turning_constant();
  const auto gradient = [&]() -> VectorXd {
    return high(times(scores.key, context.high) + constant, false) -
           low(times(scores.key, context.low) + constant, false);
  };
  VectorXd g = gradient();
  for (int step = 0; step < most_steps; ++step) {
    const VectorXd pull = transposed_times(scores.query, g);
    const double length = pull.norm();
    if (length > 0.0) context.query_point = pull / length;
    const VectorXd query = scores.query_at(context.query_point);
    context.high = along(transposed_times(scores.key, high(query, true)), 1.0);
    context.low = along(transposed_times(scores.key, low(query, true)), -1.0);
    g = gradient();
    const double spread = query.dot(g);
    const bool done = spread <= context.spread * (1.0 + least_gain);
    context.spread = std::max(context.spread, spread);
    if (done) return;
  }
}

/// Stops early where it meets the distances of a context that is `known` to be as wide.
RotaryContext improved(const RotaryScores& scores, const Sweep& sweep, RotaryContext context, int sweeps,
                       double least_gain, const RotaryContext& known = {.spread = -1.0}) {
  for (int round = 0; round < sweeps; ++round) {
    RotaryContext next = widest_context(scores, sweep, context.query_point);
    climb(scores, next, least_gain);
    if (next.high_distance == known.high_distance && next.low_distance == known.low_distance &&
        next.spread <= known.spread * (1.0 + least_gain)) {
      return next;
    }
    if (next.spread <= context.spread * (1.0 + least_gain)) break;
    context = std::move(next);
  }
  return context;
}

}  // namespace

VectorXd best_key(const RotaryScores& scores, const VectorXd& query, std::size_t t, double sign) {
  return along(scores.key.transpose() * turned(scores, query, -static_cast<double>(t)), sign);
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
  const Ranges ranges = sweep.near(query);
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

Sharpness sharpness_at(const RotaryScores& scores, std::vector<std::size_t> distances, const Turns& turns) {
  Sharpness result;
  result.distances = std::move(distances);
  result.points = peaks_at(scores.query, scores.key, turns, sharpness_steps).points;
  const MatrixXd key_back = scores.key.transpose();
  const MatrixXd query_back = scores.query.transpose();
  const auto queries_back = [&] {
    MatrixXd queries = product(scores.query, result.points);
    queries.colwise() += scores.query_constant;
    turn_columns(turns, true, queries);
    return queries;
  };
  MatrixXd back = queries_back();
  if (scores.query_constant.squaredNorm() > 0.0) {
    // Whichever of the two ends is on the side of the constant; then steps of a power iteration.
    MatrixXd keys = product(key_back, back);
    MatrixXd constant = scores.query_constant.replicate(1, back.cols());
    turn_columns(turns, true, constant);
    constant = product(key_back, constant);
    for (Index i = 0; i < back.cols(); ++i) {
      if (keys.col(i).dot(constant.col(i)) >= constant.col(i).squaredNorm()) continue;
      result.points.col(i) *= -1.0;
      keys.col(i) = 2.0 * constant.col(i) - keys.col(i);
    }
    for (int step = 0; step < power_steps; ++step) {
      MatrixXd pull = product(scores.key, keys);
      turn_columns(turns, false, pull);
      pull = product(query_back, pull);
      for (Index i = 0; i < pull.cols(); ++i) {
        if (const double length = pull.col(i).norm(); length > 0.0)
          result.points.col(i) = pull.col(i) / length;
      }
      back = queries_back();
      keys = product(key_back, back);
    }
  }
  result.spreads = 2.0 * product(key_back, back).colwise().norm().transpose();
  result.middles = back.transpose() * scores.key_constant;
  return result;
}

namespace {

/// Adds the contexts of a distance and those beside it, where most pairs have turned little further.
void try_beside(const RotaryScores& scores, std::size_t t, const VectorXd& start,
                std::vector<RotaryContext>& contexts) {
  const VectorXd query = scores.query_at(start);
  for (const std::size_t beside : {t - 1, t + 1}) {
    if (t == 0 || beside == 0 || beside >= scores.distances) continue;
    RotaryContext context{.query_point = start,
                          .high = best_key(scores, query, t, 1.0),
                          .low = best_key(scores, query, beside, -1.0),
                          .high_distance = t,
                          .low_distance = beside,
                          .spread = -1.0};
    climb(scores, context, first_gain);
    contexts.push_back(std::move(context));
  }
}

}  // namespace

std::optional<RotaryContext> sharpest_context(const RotaryScores& scores, const Sharpness& found,
                                              const std::vector<std::size_t>& hardest) {
  const std::size_t end = scores.distances;
  if (end < 3 || !scores.knows_frequencies()) return {};
  const bool shifts =
      scores.query_constant.squaredNorm() > 0.0 || scores.turning_constant().squaredNorm() > 0.0;
  const Sweep some(scores, scattered_distances(1, end, explored));
  std::vector<Index> order(found.distances.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return found.spreads[a] > found.spreads[b]; });
  order.resize(std::min(shifts ? shifted_starts : starts, order.size()));
  std::vector<RotaryContext> contexts;
  const auto try_from = [&](const VectorXd& start) {
    contexts.push_back(improved(scores, some, {.query_point = start, .spread = -1.0},
                                shifts ? most_sweeps : first_sweeps, shifts ? last_gain : first_gain));
  };
  for (const Index at : order) try_from(found.points.col(at));
  if (!hardest.empty()) {
    const Sharpness at_hardest = sharpness_at(scores, hardest, turns_at(scores, hardest));
    for (std::size_t i = 0; i < hardest.size(); ++i) {
      const VectorXd start = at_hardest.points.col(static_cast<Index>(i));
      try_beside(scores, hardest[i], start, contexts);
      if (shifts) try_from(start);
    }
  }
  if (shifts) {
    Random random(1);
    for (std::size_t i = 0; i < random_starts; ++i) {
      VectorXd start(scores.query.cols());
      for (double& value : start) value = random.normal();
      try_from(start.normalized());
    }
  }
  std::stable_sort(contexts.begin(), contexts.end(),
                   [](const RotaryContext& a, const RotaryContext& b) { return a.spread > b.spread; });
  const Sweep all(scores, scattered_distances(1, end, most_swept));
  RotaryContext best{.spread = -1.0};
  for (std::size_t i = 0; i < std::min(shifts ? shifted_finished : finished, contexts.size()); ++i) {
    RotaryContext context = improved(scores, all, std::move(contexts[i]), most_sweeps, last_gain, best);
    if (context.spread > best.spread) best = std::move(context);
  }
  return best;
}

}  // namespace normscope::heads
