#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <Eigen/Dense>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>
#include <normscope/selectability/attention.hpp>

/// What reaches a head's scores, as affine images of the ball that a norm fills.
namespace normscope::selectability {

/// {L u + c : |u| <= 1}, with what rounding may have changed in L and in c.
struct AffineImage {
  Eigen::MatrixXd map;       ///< L, head_dim × width
  Eigen::VectorXd constant;  ///< c, head_dim
  double map_lost = 0.0;     ///< bounds the error of L, Frobenius norm
  double constant_size = 0.0;
  double constant_lost = 0.0;

  /// W and b of what the norm puts out: L = r W G Π, c = W β + b, or with Π left out. The errors of W and b
  /// are counted as lost.
  AffineImage(const NormSpec& norm, MatrixView<const double> weight, std::span<const double> bias,
              const MapError& error, bool centers);
  /// What a norm of the head's own puts out, whatever enters: L = r G Π, c = β.
  AffineImage(const NormSpec& own, bool centers);
  /// W = G Π after another image and b = β: `own` without its scaling.
  [[nodiscard]] AffineImage through(const NormSpec& own, bool centers) const;
  /// Row i times factors[i]; unchanged for no factors.
  void scale_rows(std::span<const double> factors);

 private:
  AffineImage() = default;
  void add(const MapError& error, const NormSpec& norm);
};

/// {L u : |u| <= 1} as {Rᵀ w : |w| <= 1} of no more dimensions than L has rows: Lᵀ = Q R.
struct Reduced {
  Eigen::MatrixXd basis;     ///< Q, orthonormal but for `tilt`
  Eigen::MatrixXd triangle;  ///< R
  double residual = 0.0;     ///< at least |Lᵀ − Q R|_F, with the rounding that went into L
  double tilt = 0.0;         ///< at least |QᵀQ − I|_F

  explicit Reduced(const AffineImage& image);
};

/// A norm of the head's own on its queries or keys, v = Πz/sqrt(|Πz|² + e) times gain, plus bias: how much of
/// the unit ball v fills when z comes from an image.
class OwnNorm {
 public:
  OwnNorm(const NormSpec& own, AffineImage input, bool centers);

  /// ρ: v fills the ball of this radius, proved, as Πz fills one around 0 of radius
  ///   σ >= σ_min(Π L) − |Π c|,  ρ = σ/sqrt(σ² + e);
  /// 0 where that is not positive.
  [[nodiscard]] double fills() const { return fills_; }
  /// σ of that, 0 where it is not positive.
  [[nodiscard]] double radius() const { return std::max(radius_, 0.0); }
  /// The u of the image that makes v, to rounding.
  /// Requires  |v| <= fills(), Πv = v, fills() > 0
  [[nodiscard]] Eigen::VectorXd preimage(const Eigen::VectorXd& v) const;

 private:
  AffineImage input_;  ///< of Πz
  double eps_ = 0.0;   ///< e
  double radius_ = 0.0;
  double fills_ = 0.0;
};

}  // namespace normscope::selectability
