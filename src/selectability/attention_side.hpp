#pragma once

#include <optional>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/selectability/attention.hpp>

#include "head_maps.hpp"

namespace normscope::selectability {

/// What a head's queries or keys are, each coordinate times a factor of its own: in the image of a ball,
/// which they fill but for norms of their own.
class AttentionSide {
 public:
  AttentionSide(const NormSpec& norm, MatrixView<const double> weight, std::span<const double> bias,
                const MapError& error, const NormSpec* through, bool projects,
                std::vector<double> factors = {});

  /// Of the ball of the head's norm, or of that of the norm of their own.
  [[nodiscard]] const AffineImage& image() const { return image_; }
  [[nodiscard]] const Reduced& reduced() const { return reduced_; }
  /// The part of the ball that rows are known to fill.
  [[nodiscard]] double fills() const { return own_ ? own_->fills() : 1.0; }
  [[nodiscard]] double radius() const { return own_ ? own_->radius() : 0.0; }
  [[nodiscard]] bool has_own_norm() const { return own_.has_value(); }
  /// The image with every norm's scaling left out.
  [[nodiscard]] AffineImage without_scaling() const;

  /// The point of the ball that reduced coordinates w stand for, |w| <= 1: `part` of it, and without what the
  /// map does not see, so that it is orthogonal to 1 behind a projection whatever rank the map has.
  [[nodiscard]] Eigen::VectorXd point(const Eigen::VectorXd& w, double part) const;
  /// What the head's norm puts out where a query or key is that of the point; empty where no row is known.
  [[nodiscard]] std::vector<double> row(const Eigen::VectorXd& point) const;

 private:
  const NormSpec* norm_;
  const NormSpec* through_;
  bool projects_;
  std::vector<double> factors_;
  AffineImage input_;           ///< of the norm's ball by the head's map
  std::optional<OwnNorm> own_;  ///< that the input goes through
  AffineImage image_;
  Reduced reduced_;
  Eigen::MatrixXd seen_;  ///< orthonormal coordinates, in the reduced ones, of what the map sees
};

}  // namespace normscope::selectability
