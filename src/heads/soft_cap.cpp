#include "soft_cap.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/rounding.hpp>

namespace normscope::heads {
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
