#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <Eigen/Core>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>
#include <normscope/heads/attention.hpp>

/// The queries and keys of a head as affine images of the ball that a norm fills.
namespace normscope::heads {

/// {L u + c : |u| <= 1}, with bounds of the rounding errors of L and c.
struct AffineImage {
  Eigen::MatrixXd map;       ///< L, head_dim × width
  Eigen::VectorXd constant;  ///< c, head_dim
  double map_lost = 0.0;     ///< bounds the error of L, Frobenius norm
  double constant_size = 0.0;
  double constant_lost = 0.0;

  /// The image of the norm's output under W and b: L = r W G Π, c = W β + b, or without Π. The errors of W
  /// and b are included in the bounds.
  AffineImage(const NormSpec& norm, MatrixView<const double> weight, std::span<const double> bias,
              const MapError& error, bool centers);
  /// The output of the head's own norm, for any input: L = r G Π, c = β.
  AffineImage(const NormSpec& own, bool centers);
  /// W = G Π applied to another image, b = β: the head's own norm without its scaling.
  [[nodiscard]] AffineImage through(const NormSpec& own, bool centers) const;
  /// Multiplies row i by factors[i]; an empty list leaves the image unchanged.
  void scale_rows(std::span<const double> factors);

 private:
  AffineImage() = default;
  void add(const MapError& error, const NormSpec& norm);
};

/// {L u : |u| <= 1} as {Rᵀ w : |w| <= 1}, of at most as many dimensions as L has rows: Lᵀ = Q R.
struct Reduced {
  Eigen::MatrixXd basis;     ///< Q, orthonormal up to `tilt`
  Eigen::MatrixXd triangle;  ///< R
  double residual = 0.0;     ///< at least |Lᵀ − Q R|_F, including the rounding of L
  double tilt = 0.0;         ///< at least |QᵀQ − I|_F

  explicit Reduced(const AffineImage& image);
};

/// The head's own norm of its queries or keys, v = Πz/sqrt(|Πz|² + e) times gain, plus bias, and how much of
/// the unit ball v fills when z ranges over an image.
class OwnNorm {
 public:
  OwnNorm(const NormSpec& own, const AffineImage& input, bool centers);

  /// ρ: v fills the ball of this radius, proved, as Πz fills one around 0 of radius
  ///   σ >= σ_min(Π L) − |Π c|,  ρ = σ/sqrt(σ² + e);
  /// 0 where that is not positive.
  [[nodiscard]] double fills() const { return fills_; }
  /// The σ of `fills`, 0 if it is not positive.
  [[nodiscard]] double radius() const { return std::max(radius_, 0.0); }
  /// The u of the image that yields v, up to rounding.
  ///
  /// Requires  |v| <= fills(), Πv = v, fills() > 0
  [[nodiscard]] Eigen::VectorXd preimage(const Eigen::VectorXd& v) const;

 private:
  AffineImage input_;  ///< of Πz
  double eps_ = 0.0;   ///< e
  double radius_ = 0.0;
  double fills_ = 0.0;
};

}  // namespace normscope::heads
