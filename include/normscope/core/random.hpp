#pragma once

#include <cstdint>

namespace normscope {

/// xoshiro256++ seeded through SplitMix64: the same numbers from the same seed in every language
/// and on every machine, which the standard library's distributions do not promise.
///
/// Source    [Blackman, Vigna 2021, Scrambled linear pseudorandom number generators]
class Random {
 public:
  explicit Random(std::uint64_t seed);

  /// The next 64 random bits.
  std::uint64_t bits();
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform();
  /// Uniform in [0, bound).
  ///
  /// Requires  bound >= 1
  std::uint64_t below(std::uint64_t bound);
  /// Mean 0, variance 1; Marsaglia's polar method, so it calls log and sqrt only.
  double normal();

 private:
  std::uint64_t state_[4];
  double spare_ = 0.0;
  bool has_spare_ = false;
};

}  // namespace normscope
