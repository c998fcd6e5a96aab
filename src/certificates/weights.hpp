#pragma once

#include <cstddef>
#include <vector>

namespace normscope::certificates {

inline constexpr double unit = 0x1p-53;
/// Tolerance for a stated bound, so that one rounded to its last bit is not rejected.
inline constexpr double last_bits = 64.0 * unit;

/// Bound of a sum that is exactly zero, computed in about twice the precision of float64, relative to its
/// terms.
inline constexpr double nothing = 1e-24;

struct Weight {
  std::size_t index = 0;
  double weight = 0.0;
};

/// Σ λ_j as an interval; `valid` if every λ is finite and not negative, their sum is positive, and none is on
/// the row `excluded`.
struct Total {
  bool valid = false;
  double low = 0.0;
  double high = 0.0;
};
[[nodiscard]] Total total_of(const std::vector<Weight>& weights, std::size_t excluded);

/// Upper and lower bounds of a positive number that was computed by a few operations, each rounded once.
[[nodiscard]] inline double up(double positive) { return positive * (1.0 + 16.0 * unit); }
[[nodiscard]] inline double down(double positive) { return positive * (1.0 - 16.0 * unit); }

}  // namespace normscope::certificates
