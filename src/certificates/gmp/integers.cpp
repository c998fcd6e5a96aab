#include "integers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gmpxx.h>

namespace normscope::certificates {
namespace {

/// The integer value · 2^−exponent, `exponent` that of a bit at or below the lowest of the value.
mpz_class integer(double value, int exponent) {
  int of_value = 0;
  const double fraction = std::frexp(value, &of_value);
  mpz_class result = static_cast<long>(std::ldexp(fraction, 53));
  const int shift = of_value - 53 - exponent;
  if (shift >= 0) return result << static_cast<mp_bitcnt_t>(shift);
  return result >> static_cast<mp_bitcnt_t>(-shift);
}

/// Exponent of the lowest bit of any of the numbers, or, which is simpler, a lower bound of it.
int lowest_bit(MatrixView<const double> rows, std::size_t column) {
  int result = 1023;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const double value = rows.row(row)[column];
    if (value != 0.0) result = std::min(result, std::max(std::ilogb(value) - 52, -1074));
  }
  return result;
}

bool read(const std::string& digits, mpz_class& number) {
  const bool fits = !digits.empty() && std::all_of(digits.begin(), digits.end(),
                                                   [](char c) { return c == '-' || (c >= '0' && c <= '9'); });
  return fits && number.set_str(digits, 10) == 0;
}

/// Σ normal_i row_i for integers that are the columns' numbers times powers of two.
mpz_class score(const std::vector<mpz_class>& normal, std::span<const double> row,
                const std::vector<int>& exponents) {
  mpz_class result = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] != 0.0 && normal[i] != 0) result += normal[i] * integer(row[i], exponents[i]);
  }
  return result;
}

/// Numerators on rows; false where one is not positive.
bool add(const std::vector<Numerator>& numerators, MatrixView<const double> rows, int sign,
         const std::vector<int>& exponents, std::vector<mpz_class>& point, mpz_class& total) {
  mpz_class number;
  for (const Numerator& numerator : numerators) {
    if (!read(numerator.digits, number) || number <= 0 || numerator.row >= rows.rows()) return false;
    total += number;
    number *= sign;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const double value = rows.row(numerator.row)[i];
      if (value != 0.0) point[i] += number * integer(value, exponents[i]);
    }
  }
  return true;
}

}  // namespace

std::optional<bool> separates(const std::vector<std::string>& normal, MatrixView<const double> a,
                              MatrixView<const double> b) {
  if (normal.size() != a.width()) return false;
  std::vector<int> exponents;
  for (std::size_t i = 0; i < normal.size(); ++i) {
    exponents.push_back(std::min(lowest_bit(a, i), lowest_bit(b, i)));
  }
  // A product by one power of two for all columns.
  const int common = exponents.empty() ? 0 : *std::min_element(exponents.begin(), exponents.end());
  std::vector<mpz_class> numbers(normal.size());
  for (std::size_t i = 0; i < normal.size(); ++i) {
    if (!read(normal[i], numbers[i])) return false;
    numbers[i] <<= static_cast<mp_bitcnt_t>(exponents[i] - common);
  }
  mpz_class least = score(numbers, a.row(0), exponents);
  for (std::size_t row = 1; row < a.rows(); ++row)
    least = std::min(least, score(numbers, a.row(row), exponents));
  for (std::size_t row = 0; row < b.rows(); ++row) {
    if (score(numbers, b.row(row), exponents) >= least) return false;
  }
  return true;
}

std::optional<bool> meet(const std::vector<Numerator>& of_a, const std::vector<Numerator>& of_b,
                         const std::string& denominator, MatrixView<const double> a,
                         MatrixView<const double> b) {
  std::vector<int> exponents;
  for (std::size_t i = 0; i < a.width(); ++i) {
    exponents.push_back(std::min(lowest_bit(a, i), lowest_bit(b, i)));
  }
  std::vector<mpz_class> difference(a.width());
  mpz_class total_a;
  mpz_class total_b;
  mpz_class whole;
  if (!read(denominator, whole)) return false;
  if (!add(of_a, a, 1, exponents, difference, total_a)) return false;
  if (!add(of_b, b, -1, exponents, difference, total_b)) return false;
  return whole > 0 && total_a == whole && total_b == whole &&
         std::all_of(difference.begin(), difference.end(), [](const mpz_class& d) { return d == 0; });
}

}  // namespace normscope::certificates
