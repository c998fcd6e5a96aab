#include "rotary_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/proof/ball.hpp>

#include "rotary_scores.hpp"
#include "turned_gram.hpp"

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Factor by which a bound is raised after a failed proof; a larger one gives fewer failures and a looser
/// bound.
constexpr double raise = 1e-3;
/// The ellipsoid of queries is enlarged by this fraction of its size, so that P is computed within rounding.
constexpr double thickening = 1e-7;
/// Distances to which κ and ρ are fitted.
constexpr std::size_t fitted = 2;
/// Another distance is added, and the fit repeated, while that distance needs a bound larger by this factor.
constexpr double worthwhile = 1.02;
constexpr int most_fits = 5;
constexpr unsigned all_lanes = (1u << TurnedGramTest::lanes) - 1u;

/// The centre of the range of R_t d: the centre of the circle around its arc.
VectorXd middle_of(const RotaryScores& scores, std::size_t distances) {
  VectorXd result = scores.turning_constant();
  for (Index j = 0; j < scores.pairs; ++j) {
    const double half =
        0.5 * scores.frequencies[static_cast<std::size_t>(j)] * static_cast<double>(distances - 1);
    const double part = std::max(0.0, std::cos(std::min(std::abs(half), 0.5 * std::numbers::pi)));
    const double x = result[2 * j];
    const double y = result[2 * j + 1];
    result[2 * j] = part * (std::cos(half) * x - std::sin(half) * y);
    result[2 * j + 1] = part * (std::sin(half) * x + std::cos(half) * y);
  }
  return result;
}

class Enumeration {
 public:
  Enumeration(const RotaryScores& scores, std::size_t distances)
      : scores_(scores),
        distances_(distances),
        constant_(scores.turning_constant()),
        centre_(middle_of(scores, distances)),
        key_gram_(scores.key * scores.key.transpose()),
        key_square_(constant_.squaredNorm() > 0.0 ? 1.0 : 0.0) {
    set_query_square(scores.query_constant.squaredNorm() > 0.0 ? 1.0 : 0.0);
  }

  /// Approximate b² needed at distance t.
  [[nodiscard]] double need(std::size_t t) const {
    const MatrixXd inner = factor_.transpose() * gram(t) * factor_;
    return symmetric_eigenvalues(inner).maxCoeff();
  }
  [[nodiscard]] double need(const std::vector<std::size_t>& distances) const {
    double most = 0.0;
    for (const std::size_t t : distances) most = std::max(most, need(t));
    return most;
  }

  [[nodiscard]] bool has_choice() const { return query_square_ > 0.0 || key_square_ > 0.0; }

  /// Minimizes the largest need of the given distances over κ² and ρ² in turn, with decreasing steps.
  void fit(const std::vector<std::size_t>& distances) {
    double best = need(distances);
    double step = 8.0;
    while (step > 1.2) {
      for (const bool of_queries : {true, false}) {
        const double now = of_queries ? query_square_ : key_square_;
        if (now == 0.0) continue;
        if (!walk(of_queries, step, distances, best)) walk(of_queries, 1.0 / step, distances, best);
      }
      step = std::sqrt(step);
    }
  }

  /// The b² that was proved and the distance that determined it; empty if b² would exceed `limit`.
  struct Proof {
    DistanceBound bound{};
    double square = 0.0;
    std::size_t hardest = 0;
  };
  [[nodiscard]] std::optional<Proof> prove(double most_needed, double limit) {
    const Index dim = scores_.dim();
    // At most 1 but for rounding. Less would need a proof of its own in the certificate.
    const double queries = std::max(1.0, proof::largest_length(RowMajor(inverse_ * scores_.query),
                                                               as_span(inverse_ * scores_.query_constant))
                                                 .upper +
                                             rounding(dim) * inverse_.norm() * scores_.query_size());
    // P is defined by the rounded inverse, so rounding of the inversion does not affect the proof.
    const MatrixXd shape = inverse_.transpose() * inverse_;
    const double shape_size = inverse_.squaredNorm();
    const double shift = key_square_ > 0.0 ? 4.0 * constant_.squaredNorm() / key_square_ : 0.0;
    const double gram_size = (1.0 + key_square_) * (scores_.key.squaredNorm() + shift);
    double square = most_needed * (1.0 + raise);
    std::size_t hardest = distances_;
    const MatrixXd gram = (1.0 + key_square_) * key_gram_;
    TurnedGramTest test(static_cast<std::size_t>(dim), gram.data());
    const auto set_shape = [&] {
      MatrixXd bound = square * shape;
      // The largest error of the smallest eigenvalue caused by rounding of the matrices and of the factor.
      // Source  [Rump 2006, Verification of positive definiteness]
      bound.diagonal().array() -= 4.0 * rounding(dim) * (square * shape_size + gram_size);
      test.set_shape(bound.data());
    };
    set_shape();
    constexpr std::size_t together = TurnedGramTest::lanes;
    for (std::size_t first = 0; first < distances_; first += together) {
      const std::size_t last = std::min(distances_, first + together) - 1;
      for (std::size_t lane = 0; lane < together; ++lane) place(std::min(first + lane, last), lane, test);
      for (unsigned good = test.passes(); good != all_lanes; good = test.passes()) {
        for (std::size_t lane = 0; lane < together; ++lane) {
          if ((good >> lane & 1u) != 0) continue;
          hardest = std::min(first + lane, last);
          square = std::max(square, need(hardest));
        }
        square *= 1.0 + raise;
        if (square > limit) return {};
        set_shape();
      }
    }
    const double reach = queries * std::sqrt(square) * (1.0 + rounding(4));
    return Proof{.bound = {.distances = distances_,
                           .spread = 2.0 * reach + scores_.slack(distances_),
                           .query_square = query_square_,
                           .key_square = key_square_,
                           .reach = reach,
                           .centre = centre_},
                 .square = square,
                 .hardest = hardest};
  }

 private:
  /// Stores R_t and the shift of G_t in a lane.
  void place(std::size_t t, std::size_t lane, TurnedGramTest& test) const {
    for (Index j = 0; j < scores_.pairs; ++j) {
      const double angle = static_cast<double>(t) * scores_.frequencies[static_cast<std::size_t>(j)];
      test.set_turn(static_cast<std::size_t>(j), lane, std::cos(angle), std::sin(angle));
    }
    if (key_square_ == 0.0) return;
    const double factor = std::sqrt((1.0 + key_square_) / key_square_);
    const VectorXd shift = factor * shift_at(t);
    for (Index i = 0; i < shift.size(); ++i) test.set_shift(static_cast<std::size_t>(i), lane, shift[i]);
  }

  /// e.
  [[nodiscard]] VectorXd shift_at(std::size_t t) const {
    return turned(scores_, constant_, static_cast<double>(t)) - centre_;
  }

  /// Multiplies κ² or ρ² by this factor while that decreases the need; returns whether it did.
  bool walk(bool of_queries, double factor, const std::vector<std::size_t>& distances, double& best) {
    bool helped = false;
    for (;;) {
      const double before = of_queries ? query_square_ : key_square_;
      const double next = before * factor;
      if (!(next > 1e-8 && next < 1e8)) return helped;
      of_queries ? set_query_square(next) : set_key_square(next);
      const double found = need(distances);
      if (!(found < best)) {
        of_queries ? set_query_square(before) : set_key_square(before);
        return helped;
      }
      best = found;
      helped = true;
    }
  }

  void set_query_square(double square) {
    query_square_ = square;
    MatrixXd shape = scores_.query * scores_.query.transpose();
    if (square > 0.0) {
      shape += scores_.query_constant * scores_.query_constant.transpose() / square;
      shape *= 1.0 + square;
    }
    shape.diagonal().array() += thickening * shape.trace();
    factor_ = cholesky_factor(shape);
    inverse_ = factor_.triangularView<Eigen::Lower>().solve(MatrixXd::Identity(scores_.dim(), scores_.dim()));
  }
  void set_key_square(double square) { key_square_ = square; }

  /// G_t.
  [[nodiscard]] MatrixXd gram(std::size_t t) const {
    const double at = static_cast<double>(t);
    MatrixXd result = turned(scores_, turned(scores_, key_gram_, at).transpose(), at);
    if (key_square_ == 0.0) return result;
    const VectorXd shift = shift_at(t);
    result += shift * shift.transpose() / key_square_;
    return (1.0 + key_square_) * result;
  }

  const RotaryScores& scores_;
  std::size_t distances_;
  VectorXd constant_;  ///< d
  VectorXd centre_;    ///< z
  MatrixXd key_gram_;
  double key_square_;          ///< ρ²
  double query_square_ = 0.0;  ///< κ²
  MatrixXd factor_;            ///< L, the Cholesky factor of the enlarged Gram matrix of queries, L Lᵀ
  MatrixXd inverse_;           ///< L⁻¹
};

}  // namespace

DistanceBound bound_by_distance(const RotaryScores& scores, std::size_t distances,
                                const std::vector<std::size_t>& likely) {
  if (scores.query.norm() + scores.query_constant.norm() == 0.0 ||
      scores.key.norm() + scores.turning_constant().norm() == 0.0) {
    return {
        .distances = distances, .spread = scores.slack(distances), .centre = VectorXd::Zero(scores.dim())};
  }
  Enumeration enumeration(scores, distances);
  std::vector<std::pair<double, std::size_t>> needs;
  for (const std::size_t t : likely) needs.emplace_back(enumeration.need(t), t);
  std::sort(needs.rbegin(), needs.rend());
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < std::min(fitted, needs.size()); ++i) first.push_back(needs[i].second);
  // κ and ρ fitted to some distances may be worse at another, which is then added to the fit.
  DistanceBound best;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < most_fits; ++round) {
    enumeration.fit(first);
    const double needed = enumeration.need(first);
    const std::optional<Enumeration::Proof> proof = enumeration.prove(needed, least);
    if (!proof) break;
    least = proof->square;
    best = proof->bound;
    if (!enumeration.has_choice() || proof->hardest == distances || least <= worthwhile * needed) break;
    first.push_back(proof->hardest);
  }
  return best;
}

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
