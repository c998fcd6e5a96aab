#pragma once

#include <optional>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/heads/attention.hpp>

#include "head_maps.hpp"

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
  Eigen::MatrixXd seen_;  ///< orthonormal basis, in reduced coordinates, of the map's row space
};

}  // namespace normscope::heads
