#pragma once

#include <cstddef>
#include <limits>

/// Bounds of rounding errors, for results that must hold in exact arithmetic.
namespace normscope {

/// Relative rounding error of one float64 operation.
inline constexpr double unit_roundoff = 0x1p-53;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Error bound of a sum of `terms` products, relative to the sum of their sizes, with a factor of two for a
/// few operations around it. It holds for any order of summation, with or without fused products; no product
/// may underflow.
///
/// Source    [Higham 2002, section 3.1] γ_n = n u/(1 − n u)
///
/// Accuracy  a bound while terms < 2⁵⁰ (test: Rounding.BoundsSumsOfProducts)
[[nodiscard]] constexpr double rounding(std::ptrdiff_t terms) {
  return 2.0 * static_cast<double>(terms + 4) * unit_roundoff;
}

}  // namespace normscope
