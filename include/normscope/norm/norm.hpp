#pragma once

#include <span>

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

}  // namespace normscope::norm
