#pragma once

#include <cstddef>
#include <vector>

namespace normscope::certificates {

inline constexpr double unit = 0x1p-53;
/// A bound may be stated to its last bit: what this hides of it is not held against it.
inline constexpr double last_bits = 64.0 * unit;

/// In about twice the precision of float64, a sum that is zero is this much at most, in parts of its terms.
inline constexpr double nothing = 1e-24;

struct Weight {
  std::size_t index = 0;
  double weight = 0.0;
};

/// Σ λ_j as an interval; `valid` where every λ is finite and not negative, their sum is positive, and none is
/// on the row `excluded`.
struct Total {
  bool valid = false;
  double low = 0.0;
  double high = 0.0;
};
[[nodiscard]] Total total_of(const std::vector<Weight>& weights, std::size_t excluded);

/// At least a and at most a, where each of a few operations on positive numbers rounded once.
[[nodiscard]] inline double up(double positive) { return positive * (1.0 + 16.0 * unit); }
[[nodiscard]] inline double down(double positive) { return positive * (1.0 - 16.0 * unit); }

}  // namespace normscope::certificates
