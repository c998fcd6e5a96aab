#pragma once

#include <string_view>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// A norm as the composition of four maps, each with a plain geometric meaning:
/// project → scale → stretch → shift.
///
/// Source    [Riechers 2024, eq. 6]
///
/// Shapes    x, y (rows, spec.width); y is x itself or does not overlap it
///
/// Errors    Argument, Shape: see `validate`, and when x or y is not spec.width wide
namespace normscope::norm {

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
