#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <vector>

#include <normscope/core/eigen/linear_algebra.hpp>
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
constexpr double raise = 3e-4;
/// The ellipsoid of queries is enlarged by this fraction of its size, so that P is computed within rounding.
constexpr double thickening = 1e-7;
/// Distances to which κ and ρ are fitted.
constexpr std::size_t fitted = 2;
/// Another distance is added, and the fit repeated, while that distance needs a bound larger by this factor.
constexpr double worthwhile = 1.001;
constexpr int most_fits = 6;
/// Steps of an iteration that estimates needs to about a part in 10⁴.
constexpr int need_steps = 18;
constexpr int known_steps = 6;
/// Distances whose needs are estimated together, if those that float32 leaves open are more.
constexpr std::size_t sampled = 32;
constexpr int most_screens = 6;
/// Hardest distances that are known of a proof.
constexpr std::size_t kept = 12;
/// Distances whose turns are computed together.
constexpr std::size_t turned_together = 8192;

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

/// b² P − G_t over b²: what is to be positive definite at each distance.
struct Scaled {
  MatrixXd shape;       ///< P
  MatrixXd gram;        ///< G_t without its shift, before it is turned
  VectorXd constant{};  ///< what is turned for the shift, and what is subtracted from that; or empty
  VectorXd centre{};
  VectorXd errors{};    ///< of rounding to float64, on the diagonal
  double traces = 0.0;  ///< bounds the trace of G_t
};

/// Whether these matrices are positive definite, T float or double.
template <typename T>
class DistanceTest {
 public:
  DistanceTest(const RotaryScores& scores, const Scaled& matrices)
      : scores_(scores),
        constant_(matrices.constant),
        centre_(matrices.centre),
        test_(static_cast<std::size_t>(scores.dim()), matrices.gram.data()) {
    MatrixXd shape = matrices.shape;
    shape.diagonal() -= matrices.errors;
    test_.set_shape(shape.data());
  }

  /// Those of the distances that do not pass.
  [[nodiscard]] std::vector<std::size_t> failing(const std::vector<std::size_t>& distances) {
    std::vector<std::size_t> result;
    for (std::size_t first = 0; first < distances.size(); first += turned_together) {
      const std::size_t count = std::min(turned_together, distances.size() - first);
      const auto begin = distances.begin() + static_cast<std::ptrdiff_t>(first);
      const std::vector<std::size_t> here(begin, begin + static_cast<std::ptrdiff_t>(count));
      // Only those of the first test are the same for all heads.
      const bool shared = here.back() - here.front() + 1 == here.size() && here.size() > sampled;
      const auto turns =
          shared ? shared_turns_at(scores_, here) : std::make_shared<const Turns>(turns_at(scores_, here));
      for (std::size_t at = 0; at < count; at += lanes) {
        const std::size_t filled = std::min(lanes, count - at);
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          place(*turns, static_cast<Index>(at + std::min(lane, filled - 1)), lane);
        }
        const unsigned good = test_.passes();
        for (std::size_t lane = 0; lane < filled; ++lane) {
          if ((good >> lane & 1u) == 0) result.push_back(here[at + lane]);
        }
      }
    }
    return result;
  }

 private:
  static constexpr std::size_t lanes = TurnedGramTest<T>::lanes;

  /// Stores R_t and the shift of G_t in a lane.
  void place(const Turns& turns, Index at, std::size_t lane) {
    const bool shifts = constant_.size() > 0;
    for (Index j = 0; j < scores_.pairs; ++j) {
      const double cosine = turns.cosines(at, j);
      const double sine = turns.sines(at, j);
      test_.set_turn(static_cast<std::size_t>(j), lane, cosine, sine);
      if (!shifts) continue;
      const double x = constant_[2 * j];
      const double y = constant_[2 * j + 1];
      set_shift(2 * j, lane, cosine * x - sine * y);
      set_shift(2 * j + 1, lane, sine * x + cosine * y);
    }
    if (!shifts) return;
    for (Index i = scores_.turning(); i < scores_.dim(); ++i) set_shift(i, lane, constant_[i]);
  }
  void set_shift(Index i, std::size_t lane, double value) {
    test_.set_shift(static_cast<std::size_t>(i), lane, value - centre_[i]);
  }

  const RotaryScores& scores_;
  VectorXd constant_;
  VectorXd centre_;
  TurnedGramTest<T> test_;
};

class Enumeration {
 public:
  Enumeration(const RotaryScores& scores, std::size_t distances)
      : scores_(scores),
        distances_(distances),
        constant_(scores.turning_constant()),
        centre_(middle_of(scores, distances)),
        query_gram_(product(scores.query, scores.query.transpose())),
        key_gram_(product(scores.key, scores.key.transpose())),
        key_square_(constant_.squaredNorm() > 0.0 ? 1.0 : 0.0) {
    set_squares(scores.query_constant.squaredNorm() > 0.0 ? 1.0 : 0.0, key_square_);
  }

  /// Approximate b² needed at these distances.
  /// `points` are those of earlier estimates, which make it faster, and become those of this one.
  [[nodiscard]] VectorXd needs(const std::vector<std::size_t>& distances, MatrixXd* points = nullptr) const {
    const Turns turns = turns_at(scores_, distances);
    MatrixXd shifts;
    if (key_square_ > 0.0) {
      shifts = constant_.replicate(1, static_cast<Index>(distances.size()));
      turn_columns(turns, false, shifts);
      shifts.colwise() -= centre_;
      shifts /= std::sqrt(key_square_);
    }
    const bool known = points != nullptr && points->cols() > 0;
    Peaks found = peaks_at(factor_, scores_.key, turns, known ? known_steps : need_steps, shifts,
                           known ? *points : MatrixXd());
    if (points != nullptr) *points = std::move(found.points);
    return (1.0 + key_square_) * found.values;
  }
  [[nodiscard]] double need(const std::vector<std::size_t>& distances) const {
    return distances.empty() ? 0.0 : needs(distances).maxCoeff();
  }

  [[nodiscard]] bool has_choice() const { return query_square_ > 0.0 || key_square_ > 0.0; }

  /// Minimizes the largest need of the given distances over κ² and ρ², each alone and both together, with
  /// decreasing steps.
  void fit(const std::vector<std::size_t>& distances, double step) {
    MatrixXd points;
    double best = needs(distances, &points).maxCoeff();
    for (; step > 1.04; step = std::sqrt(step)) {
      for (const Move& move : {Move{1.0, 0.0}, Move{0.0, 1.0}, Move{1.0, 1.0}, Move{1.0, -1.0}}) {
        if ((move.queries != 0.0 && query_square_ == 0.0) || (move.keys != 0.0 && key_square_ == 0.0))
          continue;
        if (!walk(move, step, distances, points, best)) walk(move, 1.0 / step, distances, points, best);
      }
    }
  }

  /// The b² that was proved; infinite, with the hardest distances alone, if it would exceed `limit`.
  struct Proof {
    DistanceBound bound{};
    double square = infinity;
  };
  [[nodiscard]] Proof prove(double most_needed, double limit) {
    const Index dim = scores_.dim();
    inverse_ = factor_.triangularView<Eigen::Lower>().solve(MatrixXd::Identity(dim, dim));
    // At most 1 but for rounding. Less would need a proof of its own in the certificate.
    // The multiplier is that of (1 + κ²)(C Cᵀ + c cᵀ/κ²) <= L Lᵀ.
    const double queries = std::max(1.0, proof::proved_largest(RowMajor(product(inverse_, scores_.query)),
                                                               as_span(inverse_ * scores_.query_constant), {},
                                                               1.0 / (1.0 + query_square_))
                                                 .upper +
                                             rounding(dim) * inverse_.norm() * scores_.query_size());
    Level level{.square = most_needed * (1.0 + raise), .limit = limit};
    std::vector<std::size_t> open = all_distances(0, distances_);
    for (int screen = 0; screen < most_screens && !open.empty(); ++screen) {
      const std::size_t before = open.size();
      open = left_by_float(open, level.square);
      if (open.size() <= sampled || 2 * open.size() > before) break;
      // The level is too low for many.
      std::vector<std::size_t> some;
      for (std::size_t i = 0; i < sampled; ++i) some.push_back(open[i * open.size() / sampled]);
      if (!lift(some, level)) return beyond(level);
    }
    if (!open.empty() && open.size() <= sampled && !lift(open, level)) return beyond(level);
    if (!pass_in_double(open, level)) return beyond(level);
    const double reach = queries * std::sqrt(level.square) * (1.0 + rounding(4));
    return Proof{.bound = {.distances = distances_,
                           .spread = 2.0 * reach + scores_.slack(distances_),
                           .query_square = query_square_,
                           .key_square = key_square_,
                           .reach = reach,
                           .centre = centre_,
                           .hardest = level.hardest},
                 .square = level.square};
  }

 private:
  /// The b² at which distances are tested.
  struct Level {
    double square = 0.0;
    double limit = 0.0;
    /// Those beyond the likely ones that needed more, the hardest first.
    std::vector<std::size_t> hardest{};
  };

  static Proof beyond(const Level& level) { return {.bound = {.hardest = level.hardest}}; }

  /// Raises the level to what these distances need; returns false beyond the limit.
  bool lift(const std::vector<std::size_t>& distances, Level& level) const {
    const VectorXd needed = (1.0 + raise) * needs(distances);
    std::vector<std::size_t> order(distances.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return needed[static_cast<Index>(a)] > needed[static_cast<Index>(b)];
    });
    if (const double most = needed.maxCoeff(); most > level.square) {
      level.square = most;
      level.hardest.clear();
      for (std::size_t i = 0; i < std::min(kept, order.size()); ++i) {
        level.hardest.push_back(distances[order[i]]);
      }
    }
    return level.square <= level.limit;
  }

  /// `balanced`: each coordinate times a factor, the same for both of a pair, which makes the diagonal even.
  [[nodiscard]] Scaled scaled(double square, bool balanced) const {
    const Index dim = scores_.dim();
    Scaled result{.shape = product(inverse_.transpose(), inverse_),
                  .gram = (1.0 + key_square_) / square * key_gram_};
    VectorXd factors = VectorXd::Ones(dim);
    const double shift = key_square_ > 0.0 ? 4.0 * constant_.squaredNorm() / key_square_ : 0.0;
    const double gram_size = (1.0 + key_square_) * (scores_.key.squaredNorm() + shift) / square;
    // The largest error of the smallest eigenvalue caused by rounding of the matrices and of the factor.
    // Source  [Rump 2006, Verification of positive definiteness]
    const double error = 4.0 * rounding(dim) * (inverse_.squaredNorm() + gram_size);
    if (balanced) {
      const VectorXd sizes = result.shape.diagonal();
      for (Index i = 0; i < dim; ++i) {
        const Index pair = i < scores_.turning() ? i ^ 1 : i;
        factors[i] = std::sqrt(2.0 / (sizes[i] + sizes[pair]));
      }
      for (MatrixXd* matrix : {&result.shape, &result.gram}) {
        *matrix = (factors.asDiagonal() * *matrix * factors.asDiagonal()).eval();
      }
    }
    result.errors = error * factors.cwiseAbs2();
    result.traces = result.gram.trace();
    if (key_square_ > 0.0) {
      factors *= std::sqrt((1.0 + key_square_) / key_square_ / square);
      result.constant = factors.cwiseProduct(constant_);
      result.centre = factors.cwiseProduct(centre_);
      result.traces += 4.0 * result.constant.squaredNorm();
    }
    return result;
  }

  /// Those of the distances that the test in float32 does not prove at this level.
  [[nodiscard]] std::vector<std::size_t> left_by_float(const std::vector<std::size_t>& distances,
                                                       double square) const {
    Scaled matrices = scaled(square, true);
    // An entry errs by rounding to float32, two rotations, a shift and two differences; the factor, with
    // reciprocals of its diagonal, as above. The last term bounds what underflows.
    const auto dim = static_cast<double>(scores_.dim());
    const double error =
        0x1p-23 * ((dim + 16.0) * matrices.shape.trace() + 32.0 * matrices.traces) + 0x1p-100 * dim * dim;
    if (!(error < 1.0)) return distances;
    matrices.errors.array() += error;
    DistanceTest<float> test(scores_, matrices);
    return test.failing(distances);
  }

  /// Raises the level until all of the distances pass; returns false beyond the limit.
  bool pass_in_double(std::vector<std::size_t> distances, Level& level) const {
    double step = raise;
    while (!distances.empty()) {
      DistanceTest<double> test(scores_, scaled(level.square, false));
      distances = test.failing(distances);
      if (distances.empty()) return true;
      const std::size_t first = distances.front();
      std::vector<std::size_t> some;
      for (std::size_t i = 0; i < std::min(sampled, distances.size()); ++i) {
        some.push_back(distances[i * distances.size() / std::min(sampled, distances.size())]);
      }
      const double before = level.square;
      if (!lift(some, level)) return false;
      if (level.square == before) {
        // Rounding may hide far more than the raise, and angles that are not finite never pass.
        level.square *= 1.0 + step;
        step *= 2.0;
        level.hardest = {first};
        if (!(level.square > 0.0) || !std::isfinite(level.square) || level.square > level.limit) return false;
      }
    }
    return true;
  }

  /// Powers of a step by which κ² and ρ² are multiplied.
  struct Move {
    double queries = 0.0;
    double keys = 0.0;
  };

  /// Repeats a move while that decreases the need; returns whether it did.
  bool walk(const Move& move, double step, const std::vector<std::size_t>& distances, MatrixXd& points,
            double& best) {
    bool helped = false;
    for (;;) {
      const double of_queries = query_square_;
      const double of_keys = key_square_;
      const double next_queries = of_queries * std::pow(step, move.queries);
      const double next_keys = of_keys * std::pow(step, move.keys);
      const auto in_range = [](double square) { return square == 0.0 || (square > 1e-6 && square < 1e6); };
      if (!in_range(next_queries) || !in_range(next_keys)) return helped;
      MatrixXd moved = points;
      set_squares(next_queries, next_keys);
      const double found = needs(distances, &moved).maxCoeff();
      if (!(found < best)) {
        set_squares(of_queries, of_keys);
        return helped;
      }
      points = std::move(moved);
      best = found;
      helped = true;
    }
  }

  void set_squares(double of_queries, double of_keys) {
    key_square_ = of_keys;
    if (of_queries == query_square_ && factor_.size() > 0) return;
    query_square_ = of_queries;
    MatrixXd shape = query_gram_;
    if (of_queries > 0.0) {
      shape += scores_.query_constant * scores_.query_constant.transpose() / of_queries;
      shape *= 1.0 + of_queries;
    }
    shape.diagonal().array() += thickening * shape.trace();
    factor_ = cholesky_factor(shape);
  }

  const RotaryScores& scores_;
  std::size_t distances_;
  VectorXd constant_;  ///< d
  VectorXd centre_;    ///< z
  MatrixXd query_gram_;
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
  const VectorXd needs = enumeration.needs(likely);
  std::vector<std::size_t> order(likely.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return needs[static_cast<Index>(a)] > needs[static_cast<Index>(b)];
  });
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < std::min(fitted, order.size()); ++i) first.push_back(likely[order[i]]);
  // κ and ρ fitted to some distances may be worse at another, which is then added to the fit.
  DistanceBound best{.distances = distances, .spread = infinity};
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < most_fits; ++round) {
    enumeration.fit(first, round == 0 ? 8.0 : 2.0);
    const double needed = enumeration.need(first);
    const Enumeration::Proof proof = enumeration.prove(needed, least);
    if (proof.square < least) {
      least = proof.square;
      best = proof.bound;
    }
    const std::vector<std::size_t>& hardest = proof.bound.hardest;
    if (!enumeration.has_choice() || hardest.empty() || least <= worthwhile * needed) break;
    const std::size_t more = std::min(fitted, hardest.size());
    first.insert(first.end(), hardest.begin(), hardest.begin() + static_cast<std::ptrdiff_t>(more));
  }
  return best;
}

}  // namespace normscope::heads
