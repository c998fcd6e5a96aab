#pragma once

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

namespace normscope::norm {

/// Each row of `x` normalized as `spec` says (formulas at `NormKind`).
///
/// This is the plain definition that every faster path is held against: mean and deviations are
/// compensated, deviations are centred a second time, squares are scaled so that they neither
/// overflow nor vanish.
///
/// Source    [Ba, Kiros, Hinton 2016]; [Zhang, Sennrich 2019] rms; [Ni et al. 2024] groups
/// Shapes    x, y (rows, spec.width)
/// Requires  y is x itself or does not overlap it
/// Errors    Argument, Shape: see `validate`, and when x or y is not spec.width wide
/// Accuracy  |y − exact| <= 8 u (|y − b| + |b|) per entry for entries of comparable size
///           (test: Norm.MatchesExtendedPrecision)
/// Limits    entries beyond the largest double over the width overflow the mean; a row whose
///           deviations are all zero gives the bias, also with eps = 0; NaN and infinity touch no
///           block but their own
void forward(const NormSpec& spec, MatrixView<const double> x, MatrixView<double> y);

}  // namespace normscope::norm
