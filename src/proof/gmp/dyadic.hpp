#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <gmpxx.h>

namespace normscope::proof::exact {

/// A double is mantissa · 2^exponent, the mantissa odd or 0.
struct Parts {
  std::int64_t mantissa = 0;
  int exponent = 0;
};

[[nodiscard]] inline Parts parts_of(double value) {
  if (value == 0.0) return {};
  int exponent = 0;
  const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
  const int zeros = __builtin_ctzll(static_cast<unsigned long long>(mantissa));
  return {mantissa / (std::int64_t{1} << zeros), exponent - 53 + zeros};
}

/// number · 2^exponent, exactly: every double is one, and so are sums and products.
struct Dyadic {
  mpz_class number{};
  long exponent = 0;

  Dyadic() = default;
  Dyadic(mpz_class integer, long power) : number(std::move(integer)), exponent(power) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a double is a dyadic rational
  Dyadic(double value) {
    const Parts parts = parts_of(value);
    number = static_cast<long>(parts.mantissa);
    exponent = parts.exponent;
  }

  [[nodiscard]] int sign() const { return sgn(number); }
  /// value · 2^−power.
  ///
  /// Requires  an integer
  [[nodiscard]] mpz_class over(long power) const {
    mpz_class result;
    if (number != 0) {
      mpz_mul_2exp(result.get_mpz_t(), number.get_mpz_t(), static_cast<mp_bitcnt_t>(exponent - power));
    }
    return result;
  }
  /// e with 2^(e−1) <= |value| < 2^e.
  ///
  /// Requires  a value that is not 0
  [[nodiscard]] long size() const {
    return exponent + static_cast<long>(mpz_sizeinbase(number.get_mpz_t(), 2));
  }
  /// value · 2^−power, rounded toward zero.
  [[nodiscard]] double rounded(long power = 0) const {
    long of_number = 0;
    const double fraction = mpz_get_d_2exp(&of_number, number.get_mpz_t());
    return std::ldexp(fraction, static_cast<int>(std::clamp(of_number + exponent - power, -5000L, 5000L)));
  }

  Dyadic& operator+=(const Dyadic& other) {
    if (other.number == 0) return *this;
    const long common = number == 0 ? other.exponent : std::min(exponent, other.exponent);
    number = over(common) + other.over(common);
    exponent = common;
    return *this;
  }
  friend Dyadic operator-(const Dyadic& a) { return {-a.number, a.exponent}; }
  friend Dyadic operator+(Dyadic a, const Dyadic& b) { return a += b; }
  friend Dyadic operator-(Dyadic a, const Dyadic& b) { return a += -b; }
  friend Dyadic operator*(const Dyadic& a, const Dyadic& b) {
    return {a.number * b.number, a.exponent + b.exponent};
  }
  friend bool operator<(const Dyadic& a, const Dyadic& b) { return (a - b).sign() < 0; }
};

}  // namespace normscope::proof::exact
