#pragma once

#include <vector>

#include <normscope/heads/attention.hpp>

#include "attention_side.hpp"

/// Extreme spreads of a head whose keys are all rotated by the same angle, or not at all.
namespace normscope::heads {

/// Queries and keys of a head, with the projection of every norm or without. The score factor of a rotary
/// embedding is included in the keys.
struct AttentionSides {
  AttentionSide query;
  AttentionSide key;
  double scale = 0.0;

  AttentionSides(const NormSpec& norm, const HeadMaps& maps, bool projects);
};

/// Extremes of |M w + m|, M = 2 s K Qᵀ and m = 2 s K c, for queries Qᵀ w + c and keys of triangle K.
class EqualDistance {
 public:
  explicit EqualDistance(const AttentionSides& sides);

  /// Bounds of the minimum: from below over |w| <= 1, from above over the fraction of the ball that rows
  /// fill. If the lower bound is positive, the context that proves it is stored in `proof`.
  [[nodiscard]] Spread most_uniform(std::vector<UnavoidableContext>& proof) const;
  /// Bounds of the maximum: from above over |w| <= 1, from below over the fraction that rows fill.
  [[nodiscard]] Spread sharpest() const;
  /// The two keys that differ most under a query; they are opposite points.
  [[nodiscard]] KeyPair keys_of(const Eigen::VectorXd& query) const;
  /// Whether, without scaling, some query gives all keys the same score.
  [[nodiscard]] bool uniform_without_scaling() const;

 private:
  /// The keys of the points of the ball along a direction in reduced coordinates, and against it.
  [[nodiscard]] KeyPair opposite_keys(const Eigen::VectorXd& pull) const;
  void attain(const std::vector<double>& point, Spread& result) const;
  [[nodiscard]] double spread_of(const Eigen::VectorXd& query) const;

  const AttentionSides& sides_;
  Eigen::MatrixXd matrix_;
  Eigen::VectorXd offset_;
  double slack_ = 0.0;
};

}  // namespace normscope::heads
