#include "exact.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/assert.hpp>

namespace normscope::certificates {

Exact::Exact(double value) {
  NORMSCOPE_ASSERT(std::isfinite(value));
  if (value == 0.0) return;
  int exponent = 0;
  number_ = static_cast<long>(std::ldexp(std::frexp(value, &exponent), 53));
  // Integers stay as short as they can be.
  const mp_bitcnt_t zeros = mpz_scan1(number_.get_mpz_t(), 0);
  number_ >>= zeros;
  exponent_ = exponent - 53 + static_cast<long>(zeros);
}

Exact Exact::of_digits(const std::string& digits) { return {mpz_class(digits, 10), 0}; }

Exact& Exact::operator+=(const Exact& other) {
  if (other.number_ == 0) return *this;
  if (number_ == 0) return *this = other;
  if (exponent_ > other.exponent_) {
    number_ <<= static_cast<mp_bitcnt_t>(exponent_ - other.exponent_);
    exponent_ = other.exponent_;
  }
  if (exponent_ == other.exponent_) {
    number_ += other.number_;
  } else {
    number_ += other.number_ << static_cast<mp_bitcnt_t>(other.exponent_ - exponent_);
  }
  return *this;
}

bool Exact::is_product_at_most(const Exact& a, const Exact& square, const Exact& b) {
  const int left = square.sign() == 0 ? 0 : a.sign();
  if (left <= 0 && b.sign() >= 0) return true;
  if (left >= 0 && b.sign() <= 0) return left == 0 && b.sign() == 0;
  const Exact of_a = a * a * square;
  const Exact of_b = b * b;
  return left > 0 ? of_a <= of_b : of_b <= of_a;
}

Exact exact_dot(std::span<const double> a, std::span<const double> b) {
  Exact sum;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != 0.0 && b[i] != 0.0) sum += Exact(a[i]) * Exact(b[i]);
  }
  return sum;
}

Exact exact_square(std::span<const double> a) { return exact_dot(a, a); }

Exact exact_square(const std::vector<Exact>& a) {
  Exact sum;
  for (const Exact& entry : a) sum += entry * entry;
  return sum;
}

Exact exact_total(const std::vector<Weight>& weights) {
  Exact sum;
  for (const Weight& weight : weights) sum += weight.weight;
  return sum;
}

std::vector<Exact> exact_sum(MatrixView<const double> rows, const std::vector<Weight>& weights) {
  std::vector<Exact> sum(rows.width());
  for (const Weight& weight : weights) {
    if (weight.weight == 0.0) continue;
    const Exact factor = weight.weight;
    const std::span<const double> row = rows.row(weight.index);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      if (row[i] != 0.0) sum[i] += factor * Exact(row[i]);
    }
  }
  return sum;
}

namespace {

Exact integer_score(const std::vector<Exact>& normal, std::span<const double> row) {
  Exact result;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] != 0.0) result += normal[i] * Exact(row[i]);
  }
  return result;
}

/// Adds numerators times rows; false where a numerator is not positive or a row is not there.
bool add_numerators(const std::vector<Numerator>& numerators, MatrixView<const double> rows, bool subtract,
                    std::vector<Exact>& point, Exact& total) {
  for (const Numerator& numerator : numerators) {
    const Exact number = Exact::of_digits(numerator.digits);
    if (number.sign() <= 0 || numerator.row >= rows.rows()) return false;
    total += number;
    const Exact factor = subtract ? -number : number;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const double value = rows.row(numerator.row)[i];
      if (value != 0.0) point[i] += factor * Exact(value);
    }
  }
  return true;
}

}  // namespace

bool separates(const std::vector<std::string>& normal, MatrixView<const double> a, MatrixView<const double> b,
               std::size_t skipped) {
  if (normal.size() != a.width()) return false;
  std::vector<Exact> numbers;
  for (const std::string& digits : normal) numbers.push_back(Exact::of_digits(digits));
  Exact least = integer_score(numbers, a.row(0));
  for (std::size_t row = 1; row < a.rows(); ++row) {
    least = std::min(least, integer_score(numbers, a.row(row)));
  }
  for (std::size_t row = 0; row < b.rows(); ++row) {
    if (row != skipped && least <= integer_score(numbers, b.row(row))) return false;
  }
  return true;
}

bool meet(const std::vector<Numerator>& of_a, const std::vector<Numerator>& of_b,
          const std::string& denominator, MatrixView<const double> a, MatrixView<const double> b) {
  std::vector<Exact> difference(a.width());
  Exact total_a;
  Exact total_b;
  if (!add_numerators(of_a, a, false, difference, total_a)) return false;
  if (!add_numerators(of_b, b, true, difference, total_b)) return false;
  const Exact whole = Exact::of_digits(denominator);
  return whole.sign() > 0 && total_a == whole && total_b == whole &&
         std::all_of(difference.begin(), difference.end(), [](const Exact& d) { return d.sign() == 0; });
}

}  // namespace normscope::certificates
