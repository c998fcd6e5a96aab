#pragma once

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// Products with the Jacobian J = ∂y/∂x of `forward` at each row of `x`, one row of `x` with one row of
/// the vectors; J itself is never formed. On each block of n entries, with z = x − mean (layer) or
/// z = x, R the radius (`NormSpec::radius`), s = sqrt(|z|² + R² eps) and G the gain:
///   J v  = R G (Π v/s − z (zᵀΠv)/s³)
///   Jᵀ w = R Π (G w/s − z (zᵀGw)/s³)
///
/// Source    `forward`, differentiated once
///
/// Shapes    x, v, w, out (rows, spec.width)
///
/// Requires  out is v or w itself or does not overlap it, nor x
///
/// Errors    Argument, Shape
///
/// Accuracy  1e-13 of R |g|max |v| / s, for rows of any mean
///           (test: Jacobian.IsThatOfAutomaticDifferentiation)
///
/// Cost      O(width) a row
///
/// Limits    a block whose deviations are all zero gives zeros when eps = 0, where `forward` is
///           constant by definition and has no derivative
namespace normscope::norm {

/// out = J v for each row.
void jacobian_vector(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> v,
                     MatrixView<double> out, unsigned threads = 0);

/// out = Jᵀ w for each row, as in backpropagation.
void vector_jacobian(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> w,
                     MatrixView<double> out, unsigned threads = 0);

}  // namespace normscope::norm
