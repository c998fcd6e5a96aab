#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include <normscope/core/error.hpp>

namespace normscope {

/// A number of 106 bits, high + low: high is the sum rounded to a double, low the remainder.
/// Its exponents are those of a double, and nothing beyond 2^990 may be multiplied.
///
/// Source    [Dekker 1971]; [Joldes, Muller, Popescu 2017]
///
/// Accuracy  + − * / and sqrt to 16 u² relative, u² = 2^-106, between 2^-900 and 2^990
///           (tests: DoubleDouble.MatchesQuadruplePrecision, DoubleDouble.KeepsItsBoundNearTheEnds); changing
///           the signs of the operands changes only the sign of the result
struct DoubleDouble {
  double high = 0.0;
  double low = 0.0;

  constexpr DoubleDouble() = default;
  constexpr DoubleDouble(double value) : high(value) {}
  constexpr DoubleDouble(double high_part, double low_part) : high(high_part), low(low_part) {}

  /// a + b, exact.
  [[nodiscard]] static constexpr DoubleDouble sum(double a, double b) {
    const double s = a + b;
    const double t = s - a;
    return {s, (a - (s - t)) + (b - t)};
  }
  /// a + b, exact where |a| >= |b| or a = 0.
  [[nodiscard]] static constexpr DoubleDouble ordered_sum(double a, double b) {
    const double s = a + b;
    return {s, b - (s - a)};
  }
  /// a b, exact but for underflow. Without std::fma, which is a slow call on machines that lack it.
  [[nodiscard]] static constexpr DoubleDouble product(double a, double b) {
    const DoubleDouble x = halves(a);
    const DoubleDouble y = halves(b);
    const double p = a * b;
    return {p, ((x.high * y.high - p) + x.high * y.low + x.low * y.high) + x.low * y.low};
  }

  [[nodiscard]] constexpr double value() const { return high + low; }

  constexpr DoubleDouble operator-() const { return {-high, -low}; }

  friend constexpr DoubleDouble operator+(const DoubleDouble& a, const DoubleDouble& b) {
    const DoubleDouble s = sum(a.high, b.high);
    const DoubleDouble t = sum(a.low, b.low);
    const DoubleDouble v = ordered_sum(s.high, s.low + t.high);
    return ordered_sum(v.high, t.low + v.low);
  }
  friend constexpr DoubleDouble operator-(const DoubleDouble& a, const DoubleDouble& b) { return a + -b; }
  friend constexpr DoubleDouble operator*(const DoubleDouble& a, const DoubleDouble& b) {
    const DoubleDouble p = product(a.high, b.high);
    return ordered_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
  }
  friend constexpr DoubleDouble operator/(const DoubleDouble& a, const DoubleDouble& b) {
    const double first = a.high / b.high;
    const DoubleDouble rest = a - b * first;
    const double second = rest.high / b.high;
    const DoubleDouble last = rest - b * second;
    return ordered_sum(first, second) + DoubleDouble(last.high / b.high);
  }
  DoubleDouble& operator+=(const DoubleDouble& other) { return *this = *this + other; }
  DoubleDouble& operator-=(const DoubleDouble& other) { return *this = *this - other; }
  DoubleDouble& operator*=(const DoubleDouble& other) { return *this = *this * other; }
  DoubleDouble& operator/=(const DoubleDouble& other) { return *this = *this / other; }

  friend constexpr bool operator==(const DoubleDouble& a, const DoubleDouble& b) {
    return a.high == b.high && a.low == b.low;
  }
  friend constexpr bool operator<(const DoubleDouble& a, const DoubleDouble& b) {
    return a.high < b.high || (a.high == b.high && a.low < b.low);
  }
  friend constexpr bool operator>(const DoubleDouble& a, const DoubleDouble& b) { return b < a; }

  friend DoubleDouble sqrt(const DoubleDouble& a) {
    const double root = std::sqrt(a.high);
    if (!(root > 0.0) || !std::isfinite(root)) return root;
    return ordered_sum(root, (a - product(root, root)).high / (2.0 * root));
  }

 private:
  /// Two parts of at most 26 bits each.
  [[nodiscard]] static constexpr DoubleDouble halves(double a) {
    const double scaled = 134217729.0 * a;  // 2^27 + 1
    const double upper = scaled - (scaled - a);
    return {upper, a - upper};
  }
};

/// The double next to a number.
[[nodiscard]] constexpr double to_double(double value) { return value; }
[[nodiscard]] constexpr double to_double(const DoubleDouble& value) { return value.high; }

// Error-free arithmetic, for decisions that depend on the last bits.

/// a + b, exactly.
///
/// Source    [Knuth, TAOCP 2, 4.2.2]
[[nodiscard]] inline DoubleDouble two_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

/// a b, exactly if neither part overflows or underflows.
[[nodiscard]] inline DoubleDouble two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

/// A number and a bound of its error.
struct Bounded {
  double value = 0.0;
  double error = 0.0;

  [[nodiscard]] double low() const { return value - error; }
  [[nodiscard]] double high() const { return value + error; }
};

/// A sum of products in about twice the precision, with a bound of its error.
///
/// Source    [Ogita, Rump, Oishi 2005, Accurate sum and dot product, Dot2]
class ExactSum {
 public:
  void add(DoubleDouble a, double b) {
    if (a.high == 0.0 || b == 0.0) return;
    const DoubleDouble product = two_product(a.high, b);
    const DoubleDouble sum = two_sum(sum_, product.high);
    sum_ = sum.high;
    rest_ += sum.low + (product.low + a.low * b);
    size_ += std::abs(product.high);
    ++terms_;
  }

  /// |value − exact| <= error, which is 2u |value| + 8 (terms + 2)² u² Σ|a b|.
  [[nodiscard]] Bounded result() const {
    if (terms_ == 0.0) return {};
    constexpr double u = 0x1p-53;
    const double value = sum_ + rest_;
    const double terms = terms_ + 2.0;
    return {value, 2.0 * u * std::abs(value) + 8.0 * terms * terms * u * u * size_ +
                       4.0 * terms * std::numeric_limits<double>::min()};
  }

 private:
  double sum_ = 0.0;
  double rest_ = 0.0;
  double size_ = 0.0;
  double terms_ = 0.0;
};

/// directionᵀ(a − b), with exact differences and products.
///
/// Accuracy  within its own bound, 2u of the result but for terms of second order
///           (test: Exact.DifferenceDotIsWithinItsBound)
[[nodiscard]] inline Bounded difference_dot(std::span<const double> direction, std::span<const double> a,
                                            std::span<const double> b) {
  NORMSCOPE_ASSERT(direction.size() == a.size() && a.size() == b.size());
  ExactSum sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.add(two_sum(a[i], -b[i]), direction[i]);
  return sum.result();
}

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
