#include "reconstruct.hpp"

#include <algorithm>

namespace normscope::convex::exact {
namespace {

/// Powers prime^(2^j).
class Powers {
 public:
  Powers(std::uint32_t prime, std::size_t most) {
    squares_.emplace_back(prime);
    for (std::size_t reach = 2; reach <= most; reach *= 2) {
      squares_.push_back(squares_.back() * squares_.back());
    }
  }

  /// prime^(2^j).
  [[nodiscard]] const mpz_class& square(std::size_t j) const { return squares_[j]; }
  [[nodiscard]] mpz_class of(std::size_t exponent) const {
    mpz_class result = 1;
    for (std::size_t j = 0; exponent >> j != 0; ++j) {
      if ((exponent >> j & 1U) != 0) result *= squares_[j];
    }
    return result;
  }

 private:
  std::vector<mpz_class> squares_{};
};

/// Σ digits[k] prime^k, computed by halves; the number of digits of the lower half is a power of two.
mpz_class joined(const std::uint32_t* digits, std::size_t count, const Powers& powers) {
  if (count == 1) return digits[0];
  std::size_t j = 0;
  while ((std::size_t{2} << j) < count) ++j;
  const std::size_t half = std::size_t{1} << j;
  return joined(digits, half, powers) + joined(digits + half, count - half, powers) * powers.square(j);
}

/// value = numerator / denominator modulo `modulus` with both at most `bound`, by Euclid's algorithm.
bool fraction_of(const mpz_class& value, const mpz_class& modulus, const mpz_class& bound,
                 mpz_class& numerator, mpz_class& denominator) {
  mpz_class before = modulus;
  mpz_class rest = value;
  mpz_class factor_before = 0;
  mpz_class factor = 1;
  mpz_class quotient;
  while (rest > bound) {
    mpz_tdiv_qr(quotient.get_mpz_t(), before.get_mpz_t(), before.get_mpz_t(), rest.get_mpz_t());
    swap(before, rest);
    mpz_submul(factor_before.get_mpz_t(), quotient.get_mpz_t(), factor.get_mpz_t());
    swap(factor_before, factor);
  }
  if (factor == 0 || abs(factor) > bound) return false;
  numerator = factor < 0 ? mpz_class(-rest) : rest;
  denominator = abs(factor);
  return true;
}

}  // namespace

bool reconstruct(const std::vector<Basis::Residues>& digits, std::uint32_t prime, RationalVector& result) {
  const Powers powers(prime, digits.size());
  const mpz_class modulus = powers.of(digits.size());
  // 20 bits below the necessary bound, so that few wrong fractions pass.
  mpz_class bound = sqrt(mpz_class(modulus / 2));
  bound >>= 20U;
  result.denominator = 1;
  result.numerators.assign(digits[0].size(), 0);
  std::vector<std::uint32_t> of_entry(digits.size());
  mpz_class numerator;
  mpz_class denominator;
  for (std::size_t i = 0; i < result.numerators.size(); ++i) {
    for (std::size_t k = 0; k < digits.size(); ++k) of_entry[k] = digits[k][i];
    mpz_class value = joined(of_entry.data(), of_entry.size(), powers) * result.denominator % modulus;
    const mpz_class negative = modulus - value;
    if (value <= bound || negative <= bound) {
      result.numerators[i] = value <= bound ? value : mpz_class(-negative);
      continue;
    }
    if (!fraction_of(value, modulus, bound, numerator, denominator)) return false;
    result.denominator *= denominator;
    if (result.denominator > bound) return false;
    for (std::size_t j = 0; j < i; ++j) result.numerators[j] *= denominator;
    result.numerators[i] = numerator;
  }
  return true;
}

}  // namespace normscope::convex::exact
