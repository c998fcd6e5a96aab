#pragma once

#include <span>
#include <string_view>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// The reference definitions that the kernels are tested against. Rows are scaled by powers of two so that
/// squares neither overflow nor underflow, means and sums are compensated, deviations are centred by
/// `center`.
namespace normscope::norm {

/// Normalizes each row of `x` (formulas at `NormKind`).
///
/// Source    [Ba, Kiros, Hinton 2016]; [Zhang, Sennrich 2019] rms; [Ni et al. 2024] groups
///
/// Shapes    x, y (rows, spec.width)
///
/// Requires  y is x itself or does not overlap it
///
/// Errors    Argument, Shape: see `validate`, and when x or y is not spec.width wide
///
/// Accuracy  |y − exact| <= 4 u (|y − b| + |g| + |b|) + 2^-1074 per entry, for every row, for any mean, range
///           and width (tests: Norm.MeetsItsBoundOnAdversarialRows, Norm.KeepsItsBoundToTheEndsOfTheRange).
///           Not relative to y, since y − b and b may nearly cancel, nor to y − b, which may be far smaller
///           than other entries of the row
///
/// Limits    infinite if y − b exceeds the largest double; a row whose deviations are all zero gives the
///           bias, also with eps = 0; NaN and infinity affect only their own block
void forward(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y);

/// The gradients of a loss from dy = ∂loss/∂y, with ŷ the output without gain and bias:
///   dx = Jᵀ dy (formula at `vector_jacobian`),  dgain = Σ_rows dy · ŷ,  dbias = Σ_rows dy
///
/// Source    `forward`, differentiated once
///
/// Shapes    x, dy, dx (rows, spec.width); dgain, dbias (spec.width), or empty where one is not wanted
///
/// Requires  dx is dy itself or overlaps neither dy nor x
///
/// Errors    Argument, Shape
///
/// Accuracy  dx: 16 u of |radius| (|a| + mean|a| + |ŷ| mean|a ŷ|)/s, a = g · dy; dgain, dbias: 12 u of the
///           sum of the magnitudes (1 + |ŷ|) |dy|, |dy|, for any number of rows
///           (tests: Norm.BackwardMeetsItsBound, Norm.MeetsItsBoundsOnHugeConstantRows,
///           Norm.MeetsItsBoundOnAdversarialRows)
///
/// Limits    a block whose deviations are all zero has no gradient when eps = 0; NaN and infinity affect only
///           their own block and the gradients of its features
void backward(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> dy,
              MatrixView<double> dx, std::span<double> dgain = {}, std::span<double> dbias = {});

// Products with the Jacobian J = ∂y/∂x of `forward` at each row of `x`, one row of `x` with one row of
// the vectors; J itself is never formed. On each block of n entries, with z = x − mean (layer) or
// z = x, R the radius (`NormSpec::radius`), s = sqrt(|z|² + R² eps) and G the gain:
//   J v  = R G (Π v/s − z (zᵀΠv)/s³)
//   Jᵀ w = R Π (G w/s − z (zᵀGw)/s³)
//
// Source    `forward`, differentiated once
//
// Shapes    x, v, w, out (rows, spec.width)
//
// Requires  out is v or w itself or does not overlap it, nor x
//
// Errors    Argument, Shape
//
// Accuracy  1e-13 of R |g|max |v| / s, for rows of any mean
//           (test: Jacobian.IsThatOfAutomaticDifferentiation)
//
// Cost      O(width) a row
//
// Limits    a block whose deviations are all zero gives zeros when eps = 0, where `forward` is
//           constant by definition and has no derivative

/// out = J v for each row.
void jacobian_vector(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> v,
                     MatrixView<double> out, unsigned threads = 0);

/// out = Jᵀ w for each row, as in backpropagation.
void vector_jacobian(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> w,
                     MatrixView<double> out, unsigned threads = 0);

// Products with the second derivative of `forward` at each row of `x`, one row of `x` with one row of each
// of the vectors; no Hessian is formed. On each block, with z, R, s, Π and G as above and q =
// z/s, the second derivative between centring and gain is the bilinear form
//   T(a, b) = R (q (3 (qᵀa)(qᵀb) − aᵀb) − a (qᵀb) − b (qᵀa))/s²
// which is A ẑ(ẑᵀa)(ẑᵀb) along z and B across it (A, B, ẑ in `curvature.hpp`). wᵀT(a, b) is symmetric in w,
// a and b.
//
// Source    `forward`, differentiated twice; [Ni et al. 2024] uses the squares of all entries, `curvature`
//
// Shapes    x, u, v, w, out (rows, spec.width)
//
// Requires  out is one of the vectors itself or overlaps none, nor x
//
// Errors    Argument, Shape
//
// Accuracy  1e-13 of R |g|max |u| |v| / s², for rows of any mean
//           (test: Hessian.IsThatOfAutomaticDoubleDerivatives)
//
// Cost      O(width) a row
//
// Limits    a block whose deviations are all zero gives zeros when eps = 0, where `forward` is constant by
//           definition and has no derivative; NaN and infinity affect only their own block

/// out = D²y[u, v] = G T(Πu, Πv) for each row: the derivative along v of the change of y along u.
void second_derivative(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> u,
                       MatrixView<const double> v, MatrixView<double> out, unsigned threads = 0);

/// out = (Σ_i w_i ∂²y_i/∂x²) v = T(ΠGw, Πv) for each row: the norm's part of a Hessian-vector product for a
/// loss with ∂loss/∂y = w, in addition to Jᵀ(∂²loss/∂y²)J v.
void hessian_vector(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> w,
                    MatrixView<const double> v, MatrixView<double> out, unsigned threads = 0);

// A norm as the composition of four maps, each with a plain geometric meaning:
// project → scale → stretch → shift.
//
// Source    [Riechers 2024, eq. 6]
//
// Shapes    x, y (rows, spec.width); y is x itself or does not overlap it
//
// Errors    Argument, Shape: see `validate`, and when x or y is not spec.width wide

enum class Step { project, scale, stretch, shift };

/// The step of that name.
///
/// Errors    Argument if there is none
[[nodiscard]] Step step(std::string_view name);

/// y = Πx: each block moved onto the hyperplane through the origin orthogonal to its all-ones
/// direction. The identity for rms and spherical.
///
/// Accuracy  4 u (|y| + mean |y|) + 2^-1074 an entry of the block, for every finite x; infinite where y is
///           beyond the largest double (test: Steps.ProjectIsRightToTheEndsOfTheRange)
void project(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y);

/// y = R x / sqrt(|x|² + R² eps) a block, R = spec.radius(): into the ball of radius R, and onto
/// its surface when eps = 0. The zero vector stays where it is.
///
/// Accuracy  8 u |y| + 2^-1074 an entry, for every finite x (test: Steps.ScaleIsRightToTheEndsOfTheRange)
void scale(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y);

/// y = g · x, rounded once: the ball becomes an ellipsoid.
void stretch(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y);

/// y = x + b, rounded once.
void shift(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y);

/// One of the four.
void apply(Step step, const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y);

}  // namespace normscope::norm
