#pragma once

#include <vector>

#include <normscope/selectability/attention.hpp>

#include "attention_side.hpp"

/// The extremes of a head whose keys all turn alike, or not at all.
namespace normscope::selectability {

/// Queries and keys of a head with every norm's Π, or without. A rotation's score factor stands in the keys.
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

  /// The least over |w| <= 1 from below, over the part of the ball that rows fill from above; the context
  /// that proves the lower end, where that is positive, goes into `proof`.
  [[nodiscard]] Spread most_uniform(std::vector<UnavoidableContext>& proof) const;
  /// The largest over |w| <= 1 from above, over that part from below.
  [[nodiscard]] Spread sharpest() const;
  /// The keys that differ most under a query: opposite ones.
  [[nodiscard]] KeyPair keys_of(const Eigen::VectorXd& query) const;
  /// Whether some query gives all keys one score where nothing is scaled.
  [[nodiscard]] bool uniform_without_scaling() const;

 private:
  void attain(const std::vector<double>& point, Spread& result) const;
  [[nodiscard]] double spread_of(const Eigen::VectorXd& query) const;

  const AttentionSides& sides_;
  Eigen::MatrixXd matrix_;
  Eigen::VectorXd offset_;
  double slack_ = 0.0;
};

}  // namespace normscope::selectability
