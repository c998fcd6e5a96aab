#include "spreads.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>

#include "rotary_scores.hpp"
#include "rotary_search.hpp"
#include "rotary_weights.hpp"

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Pairs that rotate by at most this angle over the context are replaced by their middle position.
constexpr double slowest_turn = 1.6;
/// Distances of the curve: all short ones, then progressively sparser.
constexpr std::size_t curve_points = 40;
/// Other distances at which the sharpness is estimated, for a search and for proofs.
constexpr std::size_t candidates = 64;
/// Those of them that are taken for the hardest to bound.
constexpr std::size_t likely_distances = 8;

/// The order of coordinates: rotating pairs first, then the others, which include pairs of frequency 0.
RotaryScores layout(const HeadMaps& maps) {
  const Rotation& rotation = *maps.rotation;
  RotaryScores result;
  const std::size_t pairs = rotation.dims / 2;
  std::vector<bool> turning(maps.query.rows(), false);
  for (std::size_t j = 0; j < pairs; ++j) {
    if (!rotation.frequencies.empty() && rotation.frequencies[j] == 0.0) continue;
    const std::size_t a = rotation.interleaved ? 2 * j : j;
    const std::size_t b = rotation.interleaved ? 2 * j + 1 : j + pairs;
    result.order.push_back(static_cast<Index>(a));
    result.order.push_back(static_cast<Index>(b));
    turning[a] = turning[b] = true;
    // Query and key are rotated by their own positions, so a key behind its query is rotated back by the
    // distance.
    if (!rotation.frequencies.empty()) result.frequencies.push_back(-rotation.frequencies[j]);
  }
  result.pairs = static_cast<Index>(result.order.size() / 2);
  for (std::size_t i = 0; i < turning.size(); ++i) {
    if (!turning[i]) result.order.push_back(static_cast<Index>(i));
  }
  const std::size_t distances = distances_within(maps.context, maps.window);
  result.bounded = distances != 0;
  result.distances = result.bounded ? distances : searched;
  return result;
}

/// Scores of points of both balls, in the coordinates of the maps.
RotaryScores of_points(const AttentionSides& sides, const HeadMaps& maps) {
  RotaryScores result = layout(maps);
  const AffineImage& query = sides.query.image();
  const AffineImage& key = sides.key.image();
  result.query = query.map(result.order, Eigen::all);
  result.query_constant = query.constant(result.order);
  result.key = sides.scale * key.map(result.order, Eigen::all);
  result.key_constant = sides.scale * key.constant(result.order);
  result.query_lost = query.map_lost + query.constant_lost;
  result.key_lost = std::abs(sides.scale) *
                    (key.map_lost + key.constant_lost + rounding(2) * (key.map.norm() + key.constant_size));
  return result;
}

/// The scores in reduced coordinates.
RotaryScores reduced(const AttentionSides& sides, const HeadMaps& maps) {
  RotaryScores result = layout(maps);
  const Reduced& query = sides.query.reduced();
  const Reduced& key = sides.key.reduced();
  const MatrixXd query_map = query.triangle.transpose();
  const MatrixXd key_map = key.triangle.transpose();
  result.query = query_map(result.order, Eigen::all);
  result.query_constant = sides.query.image().constant(result.order);
  result.key = sides.scale * key_map(result.order, Eigen::all);
  result.key_constant = sides.scale * sides.key.image().constant(result.order);
  result.query_lost = query.residual + query.tilt * query.triangle.norm() + sides.query.image().constant_lost;
  result.key_lost = std::abs(sides.scale) *
                    (key.residual + key.tilt * key.triangle.norm() + sides.key.image().constant_lost +
                     rounding(2) * (key.triangle.norm() + sides.key.image().constant_size));
  return result;
}

/// Restricted to the fractions of the balls that rows fill.
RotaryScores within(RotaryScores scores, double queries_fill, double keys_fill) {
  scores.query *= queries_fill;
  scores.key *= keys_fill;
  return scores;
}

/// The sharpest distances. Without constants these need the largest bounds.
std::vector<std::size_t> sharpest_of(const Sharpness& found) {
  std::vector<Index> order(found.distances.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return found.spreads[a] > found.spreads[b]; });
  order.resize(std::min(likely_distances, order.size()));
  std::vector<std::size_t> result;
  for (const Index at : order) result.push_back(found.distances[static_cast<std::size_t>(at)]);
  return result;
}

std::vector<double> to_vector(const VectorXd& values) { return {values.begin(), values.end()}; }

class OverAllDistances {
 public:
  OverAllDistances(const AttentionSides& sides, const HeadMaps& maps)
      : sides_(sides), points_(of_points(sides, maps)), scores_(reduced(sides, maps)) {}

  void bound(const AttentionEffort& effort, Attention& result) const {
    OverDistances over;
    over.within = scores_.bounded ? scores_.distances : 0;
    const RotaryWeights everywhere(scores_, 0.0);
    over.everywhere = everywhere.proof(0);
    over.sharpest_anywhere = everywhere.spread();
    result.sharpest.upper = everywhere.spread();
    const Sharpness found = sharpness(over);
    search(found, bound_within(effort, found, over, result), result);
    if (result.sharpest.upper == 0.0) result.sharpest.lower = 0.0;
    bound_most_uniform(everywhere, over, result);
    result.distances = std::move(over);
  }

 private:
  /// Converts a context in reduced coordinates to points of the balls, within the fractions that rows fill.
  [[nodiscard]] KeyPair pair_of(const RotaryContext& context, bool with_rows) const {
    KeyPair pair{.high_distance = context.high_distance, .low_distance = context.low_distance};
    const double part = sides_.key.fills();
    const VectorXd high = sides_.key.point(context.high, part);
    const VectorXd low = sides_.key.point(context.low, part);
    pair.high_point = to_vector(high);
    pair.low_point = to_vector(low);
    if (with_rows) {
      pair.high_row = sides_.key.row(high);
      pair.low_row = sides_.key.row(low);
    }
    return pair;
  }

  /// The point of the reduced coordinates w, within the fraction that rows fill.
  [[nodiscard]] VectorXd query_point(const VectorXd& w) const {
    return sides_.query.point(w, sides_.query.fills());
  }

  /// Fills in the point of a query, its input row and the query itself.
  void set_query(const VectorXd& point, Spread& spread) const {
    spread.point = to_vector(point);
    spread.row = sides_.query.row(point);
    spread.query = to_vector(sides_.query.image().map * point + sides_.query.image().constant);
  }

  void search(const Sharpness& sharpness, const std::vector<std::size_t>& hardest, Attention& result) const {
    if (sides_.query.fills() == 0.0 || sides_.key.fills() == 0.0) return;
    const RotaryScores inner = within(scores_, sides_.query.fills(), sides_.key.fills());
    const std::optional<RotaryContext> found = sharpest_context(inner, sharpness, hardest);
    if (!found) return;
    const VectorXd query = query_point(found->query_point);
    set_query(query, result.sharpest);
    result.sharpest_keys = pair_of(*found, true);
    // Evaluates the stored points themselves, independently of what the search computed.
    const auto as_points = [](const std::vector<double>& point) -> VectorXd {
      return Eigen::Map<const VectorXd>(point.data(), static_cast<Index>(point.size()));
    };
    const RotaryContext attained{.query_point = query,
                                 .high = as_points(result.sharpest_keys->high_point),
                                 .low = as_points(result.sharpest_keys->low_point),
                                 .high_distance = found->high_distance,
                                 .low_distance = found->low_distance};
    const VectorXd at = points_.query * query + points_.query_constant;
    result.sharpest.lower =
        std::max(0.0, at.dot(spread_gradient(points_, attained)) - points_.slack(points_.distances));
  }

  /// The sharpness at some distances, of which the first are those of the curve.
  Sharpness sharpness(OverDistances& over) const {
    if (!scores_.knows_frequencies()) return {};
    const RotaryScores inner = within(scores_, sides_.query.fills(), sides_.key.fills());
    std::vector<std::size_t> distances = some_distances(0, scores_.distances, curve_points);
    const std::size_t drawn = distances.size();
    const std::vector<std::size_t> more = scattered_distances(1, scores_.distances, candidates);
    distances.insert(distances.end(), more.begin(), more.end());
    const auto turns = shared_turns_at(inner, distances);
    Sharpness found = sharpness_at(inner, std::move(distances), *turns);
    for (std::size_t i = 0; i < drawn; ++i) {
      const auto at = static_cast<Index>(i);
      over.curve.push_back({found.distances[i], found.spreads[at], found.middles[at]});
    }
    return found;
  }

  /// Returns the distances that were hardest to bound, as far as they are known.
  std::vector<std::size_t> bound_within(const AttentionEffort& effort, const Sharpness& found,
                                        OverDistances& over, Attention& result) const {
    if (!scores_.bounded || !scores_.knows_frequencies()) return {};
    const double cube = std::pow(static_cast<double>(scores_.dim()), 3.0);
    if (static_cast<double>(scores_.distances) * cube <= effort.operations) {
      const bool shifts =
          scores_.query_constant.squaredNorm() + scores_.turning_constant().squaredNorm() > 0.0;
      const DistanceBound bound =
          bound_by_distance(scores_, scores_.distances, shifts ? found.distances : sharpest_of(found));
      if (!(bound.spread < infinity)) return {};
      over.enumerated = true;
      over.by_distance = DistanceProof{.distances = bound.distances,
                                       .query_square = bound.query_square,
                                       .key_square = bound.key_square,
                                       .reach = bound.reach,
                                       .centre = scores_.in_head_order(bound.centre),
                                       .spread = bound.spread};
      result.sharpest.upper = std::min(result.sharpest.upper, bound.spread);
      return bound.hardest;
    }
    const RotaryWeights slow(scores_, slowest_turn);
    over.in_context = slow.proof(scores_.distances);
    result.sharpest.upper = std::min(result.sharpest.upper, slow.spread());
    return {};
  }

  void bound_most_uniform(const RotaryWeights& everywhere, OverDistances& over, Attention& result) const {
    const double queries = sides_.query.fills();
    const double keys = sides_.key.fills();
    if (queries == 0.0) {
      result.most_uniform.upper = result.sharpest.upper;
      over.uniform_anywhere = over.sharpest_anywhere;
    } else {
      const RotaryScores reachable = within(scores_, queries, 1.0);
      const RotaryUniform uniform = queries == 1.0 ? most_uniform(scores_, everywhere)
                                                   : most_uniform(reachable, RotaryWeights(reachable, 0.0));
      // Points are rounded when they are written in the coordinates of the norm's output.
      const VectorXd point = query_point(uniform.point);
      const VectorXd anywhere_point = query_point(uniform.anywhere_point);
      const double upper = uniform.upper + uniform.upper_sensitivity *
                                               sides_.query.rounding_of_point(point, uniform.point, queries);
      const double anywhere = uniform.anywhere + uniform.anywhere_sensitivity *
                                                     sides_.query.rounding_of_point(
                                                         anywhere_point, uniform.anywhere_point, queries);
      // The widest context of any query is no wider than the sharpest.
      result.most_uniform.upper = std::min(upper, result.sharpest.upper);
      over.uniform_anywhere = std::min(anywhere, over.sharpest_anywhere);
      set_query(point, result.most_uniform);
      over.anywhere_point = to_vector(anywhere_point);
      over.anywhere_proof = uniform.anywhere_proof;
      over.anywhere_proof.spread = anywhere;
      if (queries == 1.0 && keys == 1.0) return prove_uniform(uniform, result);
    }
    if (keys == 0.0) return;
    const RotaryScores known = within(scores_, 1.0, keys);
    prove_uniform(most_uniform(known, RotaryWeights(known, 0.0)), result);
  }

  void prove_uniform(const RotaryUniform& uniform, Attention& result) const {
    result.most_uniform.lower = uniform.lower;
    for (std::size_t i = 0; i < uniform.contexts.size(); ++i) {
      result.uniform_proof.push_back({uniform.shares[i], pair_of(uniform.contexts[i], false)});
    }
  }

  const AttentionSides& sides_;
  RotaryScores points_;  ///< for points of both balls
  RotaryScores scores_;  ///< for reduced coordinates
};

}  // namespace

bool turns(const HeadMaps& maps) {
  if (maps.rotation == nullptr || maps.rotation->dims == 0) return false;
  const std::span<const double> frequencies = maps.rotation->frequencies;
  return frequencies.empty() || std::any_of(frequencies.begin(), frequencies.end(),
                                            [](double frequency) { return frequency != 0.0; });
}

void bound_over_distances(const AttentionSides& sides, const HeadMaps& maps, const AttentionEffort& effort,
                          Attention& result) {
  OverAllDistances(sides, maps).bound(effort, result);
}

bool uniform_without_scaling_over_distances(const AttentionSides& sides, const HeadMaps& maps) {
  // A query must vanish on each pair on which keys differ, and the coordinates that do not rotate must not
  // distinguish keys.
  RotaryScores scores = layout(maps);
  const AffineImage query = sides.query.without_scaling();
  const AffineImage key = sides.key.without_scaling();
  // Only the image of the query's map matters, and only the lengths |Kᵀq| of the key's: both as small as the
  // head.
  const MatrixXd triangle =
      sides.query.has_own_norm() ? triangle_of(query.map.transpose()) : sides.query.reduced().triangle;
  const MatrixXd queries = triangle.transpose()(scores.order, Eigen::all);
  const VectorXd constant = query.constant(scores.order);
  if (constant.isZero(0.0)) return true;
  const MatrixXd keys = key.map(scores.order, Eigen::all);
  const VectorXd key_constant = key.constant(scores.order);
  const double size = keys.norm() + key_constant.norm();
  const Index stay = queries.rows() - scores.turning();
  const MatrixXd still = triangle_of(keys.bottomRows(stay).transpose());
  MatrixXd conditions = MatrixXd::Zero(scores.turning() + still.rows(), queries.rows());
  for (Index j = 0; j < scores.pairs; ++j) {
    const double pair = keys.middleRows(2 * j, 2).norm() + key_constant.segment(2 * j, 2).norm();
    if (pair > 1e-12 * size) conditions.block(2 * j, 2 * j, 2, 2).setIdentity();
  }
  conditions.bottomRightCorner(still.rows(), stay) = still;
  const MatrixXd matrix = conditions * queries;
  const VectorXd offset = conditions * constant;
  const VectorXd solution = least_squares(matrix, -offset);
  return (matrix * solution + offset).norm() <= 1e-10 * offset.norm();
}

}  // namespace normscope::heads
