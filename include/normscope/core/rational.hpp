#pragma once

#include <cstdint>
#include <string>

#include <normscope/core/assert.hpp>
#include <normscope/core/error.hpp>

namespace normscope {

/// A fraction in lowest terms, exact or an `Error`: numerator and denominator have 127 bits.
///
/// Errors    Argument, of every operation, for a result that does not fit
///
/// Accuracy  exact (test: Rational.IsTheFieldOfFractions)
class Rational {
 public:
  __extension__ using Wide = __int128;

  // NOLINTNEXTLINE(google-explicit-constructor): an integer is a fraction
  Rational(std::int64_t integer = 0) : numerator_(integer) {}
  /// Requires  denominator != 0
  Rational(std::int64_t numerator, std::int64_t denominator) : Rational(of(numerator, denominator)) {}

  [[nodiscard]] bool is_zero() const { return numerator_ == 0; }
  /// −1, 0 or 1.
  [[nodiscard]] int sign() const { return numerator_ > 0 ? 1 : numerator_ < 0 ? -1 : 0; }
  /// Converts to double, within two roundings.
  [[nodiscard]] double value() const {
    return static_cast<double>(numerator_) / static_cast<double>(denominator_);
  }
  /// "-3/2", or "4".
  [[nodiscard]] std::string text() const {
    return denominator_ == 1 ? digits(numerator_) : digits(numerator_) + "/" + digits(denominator_);
  }

  bool operator==(const Rational&) const = default;

  [[nodiscard]] friend Rational operator-(const Rational& a) {
    return of(times(a.numerator_, -1), a.denominator_);
  }
  [[nodiscard]] friend Rational operator+(const Rational& a, const Rational& b) {
    // Uses the least common denominator, so that intermediate results are as small as possible.
    const Wide common = divisor(a.denominator_, b.denominator_);
    const Wide factor = b.denominator_ / common;
    return of(plus(times(a.numerator_, factor), times(b.numerator_, a.denominator_ / common)),
              times(a.denominator_, factor));
  }
  [[nodiscard]] friend Rational operator-(const Rational& a, const Rational& b) { return a + -b; }
  [[nodiscard]] friend Rational operator*(const Rational& a, const Rational& b) {
    const Wide left = divisor(a.numerator_, b.denominator_);
    const Wide right = divisor(b.numerator_, a.denominator_);
    return of(times(a.numerator_ / left, b.numerator_ / right),
              times(a.denominator_ / right, b.denominator_ / left));
  }
  /// Requires  b not 0
  [[nodiscard]] friend Rational operator/(const Rational& a, const Rational& b) {
    return a * of(b.denominator_, b.numerator_);
  }
  [[nodiscard]] friend bool operator<(const Rational& a, const Rational& b) { return (a - b).sign() < 0; }

  Rational& operator+=(const Rational& other) { return *this = *this + other; }
  Rational& operator-=(const Rational& other) { return *this = *this - other; }
  Rational& operator*=(const Rational& other) { return *this = *this * other; }

 private:
  static Wide times(Wide a, Wide b) {
    Wide result = 0;
    if (__builtin_mul_overflow(a, b, &result)) overflow();
    return result;
  }
  static Wide plus(Wide a, Wide b) {
    Wide result = 0;
    if (__builtin_add_overflow(a, b, &result)) overflow();
    return result;
  }
  [[noreturn]] static void overflow() {
    throw Error(ErrorCode::Argument, "rational: a result beyond 127 bits, expected smaller numbers");
  }
  /// Greatest common divisor, at least 1.
  static Wide divisor(Wide a, Wide b) {
    while (b != 0) {
      const Wide rest = a % b;
      a = b;
      b = rest;
    }
    if (a < 0) a = times(a, -1);
    return a == 0 ? 1 : a;
  }
  static Rational of(Wide numerator, Wide denominator) {
    NORMSCOPE_ASSERT(denominator != 0);
    const Wide common = times(divisor(numerator, denominator), denominator < 0 ? -1 : 1);
    Rational result;
    result.numerator_ = numerator / common;
    result.denominator_ = denominator / common;
    return result;
  }
  static std::string digits(Wide value) {
    std::string text;
    const bool negative = value < 0;
    do {
      const int digit = static_cast<int>(value % 10);
      text.insert(text.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
      value /= 10;
    } while (value != 0);
    return negative ? "-" + text : text;
  }

  Wide numerator_ = 0;
  Wide denominator_ = 1;
};

}  // namespace normscope
