#pragma once

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// Products with the second derivative of `forward` at each row of `x`, one row of `x` with one row of each
/// of the vectors; no Hessian is formed. On each block, with z, R, s, Π and G as in `jacobian.hpp` and q =
/// z/s, the second derivative between centring and gain is the bilinear form
///   T(a, b) = R (q (3 (qᵀa)(qᵀb) − aᵀb) − a (qᵀb) − b (qᵀa))/s²
/// which is A ẑ(ẑᵀa)(ẑᵀb) along z and B across it (A, B, ẑ in `curvature.hpp`). wᵀT(a, b) is symmetric in w,
/// a and b.
///
/// Source    `forward`, differentiated twice; [Ni et al. 2024] uses the squares of all entries, `curvature`
///
/// Shapes    x, u, v, w, out (rows, spec.width)
///
/// Requires  out is one of the vectors itself or overlaps none, nor x
///
/// Errors    Argument, Shape
///
/// Accuracy  1e-13 of R |g|max |u| |v| / s², for rows of any mean
///           (test: Hessian.IsThatOfAutomaticDoubleDerivatives)
///
/// Cost      O(width) a row
///
/// Limits    a block whose deviations are all zero gives zeros when eps = 0, where `forward` is constant by
///           definition and has no derivative; NaN and infinity affect only their own block
namespace normscope::norm {

/// out = D²y[u, v] = G T(Πu, Πv) for each row: the derivative along v of the change of y along u.
void second_derivative(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> u,
                       MatrixView<const double> v, MatrixView<double> out, unsigned threads = 0);

/// out = (Σ_i w_i ∂²y_i/∂x²) v = T(ΠGw, Πv) for each row: the norm's part of a Hessian-vector product for a
/// loss with ∂loss/∂y = w, in addition to Jᵀ(∂²loss/∂y²)J v.
void hessian_vector(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> w,
                    MatrixView<const double> v, MatrixView<double> out, unsigned threads = 0);

}  // namespace normscope::norm
