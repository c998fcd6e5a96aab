#pragma once

#include <cmath>
#include <cstddef>

namespace normscope::convex {

/// Whole decimal digits of −log10 of a value in (0, 1), 0 for any other: the unit of progress reports.
inline std::size_t digits(double value) {
  return value > 0.0 && value < 1.0 ? static_cast<std::size_t>(-std::log10(value)) : 0;
}

}  // namespace normscope::convex
