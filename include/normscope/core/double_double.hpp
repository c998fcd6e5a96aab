#pragma once

#include <cmath>

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

}  // namespace normscope
