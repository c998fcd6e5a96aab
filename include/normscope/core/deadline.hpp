#pragma once

#include <chrono>

namespace normscope {

/// The time that many seconds from now; the end of the clock for 1e9 seconds and more, or NaN.
[[nodiscard]] inline std::chrono::steady_clock::time_point deadline_after(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr double longest = 1e9;
  if (!(seconds < longest)) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace normscope
