#pragma once

#include <optional>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/heads/attention.hpp>

#include "head_maps.hpp"

/// How uniform and how sharp a head can be: both sides of its scores, their spreads at one distance and over
/// all distances, and behind a soft cap.
namespace normscope::heads {

/// The queries or the keys of a head, each coordinate times a factor of its own, as affine images of a ball.
/// They fill the image unless the head has a norm of its own for them.
class AttentionSide {
 public:
  AttentionSide(const NormSpec& norm, MatrixView<const double> weight, std::span<const double> bias,
                const MapError& error, const NormSpec* through, bool projects,
                std::vector<double> factors = {});

  /// Image of the ball of the head's input norm, or of the ball of the head's own norm.
  [[nodiscard]] const AffineImage& image() const { return image_; }
  [[nodiscard]] const Reduced& reduced() const { return reduced_; }
  /// The fraction of the ball that rows provably fill.
  [[nodiscard]] double fills() const { return own_ ? own_->fills() : 1.0; }
  [[nodiscard]] double radius() const { return own_ ? own_->radius() : 0.0; }
  [[nodiscard]] bool has_own_norm() const { return own_.has_value(); }
  /// The image with the scaling of every norm left out.
  [[nodiscard]] AffineImage without_scaling() const;

  /// The point of the ball with reduced coordinates w, |w| <= 1, multiplied by `part`. Components that the
  /// map does not see are 0, so the point is orthogonal to 1 behind a projection, whatever the rank of the
  /// map.
  [[nodiscard]] Eigen::VectorXd point(const Eigen::VectorXd& w, double part) const;
  /// An upper bound of the distance, in reduced coordinates, of u = `point(w, part)` from `part` · w.
  [[nodiscard]] double rounding_of_point(const Eigen::VectorXd& u, const Eigen::VectorXd& w,
                                         double part) const;
  /// The output of the head's input norm that yields the query or key of that point; empty if no such row is
  /// known.
  [[nodiscard]] std::vector<double> row(const Eigen::VectorXd& point) const;

 private:
  const NormSpec* norm_;
  const NormSpec* through_;
  bool projects_;
  std::vector<double> factors_;
  AffineImage input_;           ///< image of the input norm's ball under the head's map
  std::optional<OwnNorm> own_;  ///< the head's own norm, which the input then passes
  AffineImage image_;
  Reduced reduced_;
  /// Orthonormal basis, in reduced coordinates, of the map's row space, unless that is all of them.
  std::optional<Eigen::MatrixXd> seen_;
};

// Extreme spreads of a head whose keys are all rotated by the same angle, or not at all.

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

/// Converts the spreads of `result` from scores s to c tanh(s/c), c = maps.soft_cap. An upper bound S becomes
/// 2c tanh(S/2c), which two scores at most S apart cannot exceed. The sharpest spread's lower bound is
/// recomputed for its own context. Any other lower bound L becomes c tanh(A/c) − c tanh((A − L)/c), the
/// smallest difference after the cap if no score exceeds A. `whole` holds the sides without projection, where
/// scores, and so A, are larger.
void bend_scores(const AttentionSides& sides, const AttentionSides* whole, const HeadMaps& maps,
                 Attention& result);

/// Whether the head has a rotary embedding that rotates its keys.
[[nodiscard]] bool turns(const HeadMaps& maps);

/// Fills `most_uniform`, `sharpest`, their attaining points and proofs, and `distances` except for equal
/// distance, over all distances within the head's context, without a soft cap.
void bound_over_distances(const AttentionSides& sides, const HeadMaps& maps, const AttentionEffort& effort,
                          Attention& result);

/// Whether, without scaling, some query gives all keys the same score at every distance.
[[nodiscard]] bool uniform_without_scaling_over_distances(const AttentionSides& sides, const HeadMaps& maps);

}  // namespace normscope::heads
