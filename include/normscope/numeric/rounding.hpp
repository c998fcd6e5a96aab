#pragma once

#include <cstddef>

/// How much of a result rounding may have made, for bounds that must hold in exact arithmetic.
namespace normscope {

/// What one operation in float64 rounds by, relative to its result.
inline constexpr double unit_roundoff = 0x1p-53;

/// What a sum of `terms` products rounds by, relative to the sum of their sizes, twice over: room for the few
/// operations around it. In whatever order it is added up, with products fused or not; none may underflow.
///
/// Source    [Higham 2002, section 3.1] γ_n = n u/(1 − n u)
/// Accuracy  a bound while terms < 2⁵⁰ (test: Rounding.BoundsSumsOfProducts)
[[nodiscard]] constexpr double rounding(std::ptrdiff_t terms) {
  return 2.0 * static_cast<double>(terms + 4) * unit_roundoff;
}

}  // namespace normscope
