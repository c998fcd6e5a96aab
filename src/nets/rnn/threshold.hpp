#pragma once

#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

/// The limits of sigmoid and tanh.
namespace normscope::nets::rnn::detail {

/// A sum, and the sum of the magnitudes of its terms.
struct Map {
  double value = 0.0;
  double size = 0.0;

  void add(double term) {
    value += term;
    size += std::abs(term);
  }
};

/// Errors    Argument if rounding may have decided
inline bool positive(const Map& map) {
  constexpr double tie = 0x1p-40;
  if (!(std::abs(map.value) > tie * map.size)) {
    throw Error(ErrorCode::Argument,
                fmt::format("saturated: a gate at {}, expected one side of 0: there is no limit", map.value));
  }
  return map.value > 0.0;
}

inline double sign(const Map& map) { return positive(map) ? 1.0 : -1.0; }

}  // namespace normscope::nets::rnn::detail
