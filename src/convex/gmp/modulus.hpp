#pragma once

#include <cstddef>
#include <cstdint>

namespace normscope::convex::exact {

/// Arithmetic modulo a prime below 2^30: sixteen products of residues fit a 64-bit word.
class Modulus {
 public:
  static constexpr std::size_t products = 16;

  explicit Modulus(std::uint32_t prime) : prime_(prime), reciprocal_(~std::uint64_t{0} / prime) {}

  [[nodiscard]] std::uint32_t prime() const { return prime_; }
  [[nodiscard]] std::uint32_t reduce(std::uint64_t value) const {
    __extension__ using Wide = unsigned __int128;
    const auto quotient = static_cast<std::uint64_t>((static_cast<Wide>(value) * reciprocal_) >> 64U);
    std::uint64_t rest = value - quotient * prime_;
    // The quotient is at most one below the exact one.
    if (rest >= prime_) rest -= prime_;
    return static_cast<std::uint32_t>(rest);
  }
  [[nodiscard]] std::uint32_t multiply(std::uint32_t a, std::uint32_t b) const {
    return reduce(static_cast<std::uint64_t>(a) * b);
  }
  [[nodiscard]] std::uint32_t negative(std::uint32_t a) const { return a == 0 ? 0 : prime_ - a; }
  [[nodiscard]] std::uint32_t power(std::uint32_t base, std::uint32_t exponent) const {
    std::uint32_t result = 1;
    for (; exponent > 0; exponent >>= 1U, base = multiply(base, base)) {
      if ((exponent & 1U) != 0) result = multiply(result, base);
    }
    return result;
  }
  /// Requires  a not 0
  [[nodiscard]] std::uint32_t inverse(std::uint32_t a) const { return power(a, prime_ - 2); }

 private:
  std::uint32_t prime_;
  std::uint64_t reciprocal_;
};

}  // namespace normscope::convex::exact
