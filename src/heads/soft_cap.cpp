#include "spreads.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/proof/ball.hpp>

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd as_vector(const std::vector<double>& values) {
  return Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
}

/// Whether M w + m = 0 has a solution of any length, up to rounding.
bool has_zero(const MatrixXd& matrix, const VectorXd& offset) {
  const VectorXd w = least_squares(matrix, -offset);
  return (matrix * w + offset).norm() <= 1e-10 * offset.norm();
}

/// Factor of each key coordinate in a score; empty if all are 1.
std::vector<double> factors_of(const HeadMaps& maps) {
  if (maps.rotation == nullptr || maps.rotation->score_factor == 1.0) return {};
  std::vector<double> result(maps.key.rows(), 1.0);
  std::fill_n(result.begin(), maps.rotation->dims, maps.rotation->score_factor);
  return result;
}

}  // namespace

AttentionSides::AttentionSides(const NormSpec& norm, const HeadMaps& maps, bool projects)
    : query(norm, maps.query, maps.query_bias, maps.query_error, maps.query_norm, projects),
      key(norm, maps.key, maps.key_bias, maps.key_error, maps.key_norm, projects, factors_of(maps)),
      scale(maps.scale) {}

EqualDistance::EqualDistance(const AttentionSides& sides) : sides_(sides) {
  const Reduced& query = sides.query.reduced();
  const Reduced& key = sides.key.reduced();
  const AffineImage& image = sides.query.image();
  matrix_ = 2.0 * sides.scale * key.triangle * query.triangle.transpose();
  offset_ = 2.0 * sides.scale * key.triangle * image.constant;
  // Products here have the size of a head; their rounding is relative to the sizes of their factors.
  const double keys = 2.0 * std::abs(sides.scale) * key.triangle.norm();
  const double queries = query.triangle.norm() * (1.0 + query.tilt) + image.constant_size;
  const double lost = image.constant_lost + 2.0 * rounding(key.triangle.cols()) * queries;
  slack_ = keys * (query.residual + lost) + keys * queries * (key.tilt + query.tilt) +
           2.0 * std::abs(sides.scale) * key.residual * (queries + query.residual + lost);
  slack_ *= 1.0 + 1e-6;
}

Spread EqualDistance::most_uniform(std::vector<UnavoidableContext>& proof) const {
  const double part = sides_.query.fills();
  const proof::ExtremeLength all = proof::least_length(RowMajor(matrix_), as_span(offset_));
  Spread result{.lower = std::max(0.0, all.lower - slack_) * sides_.key.fills() * (1.0 - rounding(1)),
                .multiplier = all.multiplier};
  if (result.lower > 0.0) {
    proof.push_back({1.0, opposite_keys(as_vector(all.dual))});
  }
  if (part == 0.0) {
    result.upper = proof::largest_length(RowMajor(matrix_), as_span(offset_)).upper + slack_;
    return result;
  }
  const proof::ExtremeLength known =
      part == 1.0 ? all : proof::least_length(RowMajor(part * matrix_), as_span(offset_));
  attain(known.point, result);
  result.upper = spread_of(as_vector(result.query)) + slack_;
  return result;
}

Spread EqualDistance::sharpest() const {
  const double part = sides_.query.fills();
  const proof::ExtremeLength all = proof::largest_length(RowMajor(matrix_), as_span(offset_));
  Spread result{.upper = all.upper + slack_, .multiplier = all.multiplier};
  if (part == 0.0) return result;
  const proof::ExtremeLength known =
      part == 1.0 ? all : proof::largest_length(RowMajor(part * matrix_), as_span(offset_));
  attain(known.point, result);
  result.lower =
      std::max(0.0, spread_of(as_vector(result.query)) - slack_) * sides_.key.fills() * (1.0 - rounding(1));
  return result;
}

KeyPair EqualDistance::keys_of(const VectorXd& query) const {
  return opposite_keys((sides_.scale < 0.0 ? -1.0 : 1.0) * (sides_.key.reduced().triangle * query));
}

KeyPair EqualDistance::opposite_keys(const VectorXd& pull) const {
  const double length = pull.norm();
  KeyPair pair;
  if (!(length > 0.0)) return pair;
  const double part = sides_.key.fills() == 0.0 ? 1.0 : sides_.key.fills();
  for (const double sign : {1.0, -1.0}) {
    const VectorXd v = sides_.key.point(sign / length * pull, part);
    (sign > 0.0 ? pair.high_point : pair.low_point).assign(v.begin(), v.end());
    (sign > 0.0 ? pair.high_row : pair.low_row) = sides_.key.row(v);
  }
  return pair;
}

bool EqualDistance::uniform_without_scaling() const {
  if (!sides_.query.has_own_norm() && !sides_.key.has_own_norm()) return has_zero(matrix_, offset_);
  const AffineImage query = sides_.query.without_scaling();
  const MatrixXd keys = triangle_of(sides_.key.without_scaling().map.transpose());
  return has_zero(keys * triangle_of(query.map.transpose()).transpose(), keys * query.constant);
}

/// The point of the ball, the input row that yields it, and its query.
void EqualDistance::attain(const std::vector<double>& point, Spread& result) const {
  const VectorXd u = sides_.query.point(as_vector(point), sides_.query.fills());
  const VectorXd query = sides_.query.image().map * u + sides_.query.image().constant;
  result.point.assign(u.begin(), u.end());
  result.query.assign(query.begin(), query.end());
  result.row = sides_.query.row(u);
}

double EqualDistance::spread_of(const VectorXd& query) const {
  return 2.0 * std::abs(sides_.scale) * (sides_.key.reduced().triangle * query).norm();
}

namespace {

using Eigen::Index;
using Eigen::VectorXd;

class SoftCap {
 public:
  SoftCap(const AttentionSides& sides, const HeadMaps& maps)
      : sides_(sides), maps_(maps), cap_(maps.soft_cap) {
    const auto size = [](const AffineImage& image) { return image.map.norm() + image.constant_size; };
    const auto lost = [](const AffineImage& image) { return image.map_lost + image.constant_lost; };
    const AffineImage& query = sides.query.image();
    const AffineImage& key = sides.key.image();
    const double factor = std::abs(sides.scale) * (1.0 + rounding(query.map.size()));
    largest_ = factor * (size(query) + lost(query)) * (size(key) + lost(key));
    const double changed = factor * (lost(query) * (size(key) + lost(key)) + size(query) * lost(key));
    double fastest = 0.0;
    std::size_t farthest = 0;
    if (maps.rotation != nullptr) {
      for (const double frequency : maps.rotation->frequencies)
        fastest = std::max(fastest, std::abs(frequency));
    }
    for (const std::size_t limit : {maps.context, maps.window}) farthest = std::max(farthest, limit);
    const Index terms = query.map.cols() + 2 * query.map.rows();
    slack_ = changed + largest_ * (8.0 * rounding(terms) +
                                   4.0 * unit_roundoff * fastest *
                                       static_cast<double>(std::max<std::size_t>(farthest, 8192)));
  }

  [[nodiscard]] double capped(double score) const { return cap_ * std::tanh(score / cap_); }
  [[nodiscard]] double above(double spread) const { return 2.0 * capped(0.5 * spread) * (1.0 + rounding(4)); }
  [[nodiscard]] double below(double spread) const {
    if (!(spread > 0.0)) return 0.0;
    const double rest = largest_ - spread;
    return std::max(0.0, capped(largest_) - capped(rest) - rounding(4) * cap_);
  }
  void bend(Spread& spread) const {
    spread.lower = below(spread.lower);
    spread.upper = above(spread.upper);
  }

  /// The difference of the scores of a context's keys under its query.
  [[nodiscard]] double attained(const Spread& spread, const KeyPair& keys) const {
    const double high = score(spread.query, keys.high_point, keys.high_distance);
    const double low = score(spread.query, keys.low_point, keys.low_distance);
    return std::max(0.0, capped(high) - capped(low) - 2.0 * slack_ - rounding(4) * cap_);
  }

 private:
  [[nodiscard]] double score(const std::vector<double>& query, const std::vector<double>& point,
                             std::size_t distance) const {
    const AffineImage& image = sides_.key.image();
    const VectorXd key =
        image.map * Eigen::Map<const VectorXd>(point.data(), static_cast<Index>(point.size())) +
        image.constant;
    double sum = 0.0;
    const auto turning = static_cast<Index>(maps_.rotation == nullptr ? 0 : maps_.rotation->dims);
    for (Index i = turning; i < key.size(); ++i) sum += query[static_cast<std::size_t>(i)] * key[i];
    for (Index j = 0; j < turning / 2; ++j) {
      const Rotation& rotation = *maps_.rotation;
      const Index a = rotation.interleaved ? 2 * j : j;
      const Index b = rotation.interleaved ? 2 * j + 1 : j + turning / 2;
      const double angle = -static_cast<double>(distance) * rotation.frequencies[static_cast<std::size_t>(j)];
      sum += query[static_cast<std::size_t>(a)] * (std::cos(angle) * key[a] - std::sin(angle) * key[b]) +
             query[static_cast<std::size_t>(b)] * (std::sin(angle) * key[a] + std::cos(angle) * key[b]);
    }
    return sides_.scale * sum;
  }

  const AttentionSides& sides_;
  const HeadMaps& maps_;
  double cap_;
  double largest_ = 0.0;  ///< upper bound of all scores
  double slack_ = 0.0;    ///< rounding error of a score
};

}  // namespace

void bend_scores(const AttentionSides& sides, const AttentionSides* whole, const HeadMaps& maps,
                 Attention& result) {
  const SoftCap cap(sides, maps);
  const SoftCap without(whole == nullptr ? sides : *whole, maps);
  result.soft_cap = maps.soft_cap;
  const double raw = result.sharpest.lower;
  cap.bend(result.sharpest);
  cap.bend(result.most_uniform);
  if (raw > 0.0 && result.sharpest_keys && sides.query.fills() == 1.0 && sides.key.fills() == 1.0) {
    result.sharpest.lower =
        std::max(result.sharpest.lower, cap.attained(result.sharpest, *result.sharpest_keys));
  }
  for (std::optional<Spread>* spread :
       {&result.uniform_without_projection, &result.sharpest_without_projection}) {
    if (*spread) without.bend(**spread);
  }
  if (!result.distances) return;
  OverDistances& over = *result.distances;
  over.sharpest_anywhere = cap.above(over.sharpest_anywhere);
  over.uniform_anywhere = cap.above(over.uniform_anywhere);
  for (Spread* spread : {&over.uniform_at_zero, &over.sharpest_at_zero}) cap.bend(*spread);
  for (std::optional<Spread>* spread :
       {&over.uniform_at_zero_without_projection, &over.sharpest_at_zero_without_projection}) {
    if (*spread) without.bend(**spread);
  }
  for (OverDistances::At& at : over.curve) {
    at.spread = cap.capped(at.middle + 0.5 * at.spread) - cap.capped(at.middle - 0.5 * at.spread);
  }
}

}  // namespace normscope::heads
