#pragma once

#include <span>

#include <normscope/core/linear_algebra.hpp>

namespace normscope {

/// y = A x, where rows or columns of A are contiguous.
///
/// Shapes    a (m × n), x (n), y (m), which overlaps neither
///
/// Accuracy  |computed − exact| <= n u/(1 − n u) Σ_j |a_ij| |x_j| per entry, plus n times the least positive
///           number where products underflow (test: Product.OfAVectorIsWithinItsBound)
void multiply_vector(Factor<double> a, std::span<const double> x, std::span<double> y);

}  // namespace normscope
