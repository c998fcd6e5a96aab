#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

#include "simplex.hpp"

namespace normscope::proof::exact {
namespace {

constexpr unsigned limb_bits = 48;
/// Number of multiplications from which another thread pays off.
constexpr std::size_t digit_grain = 200'000;
/// Number of digits before the first attempt to reconstruct fractions.
constexpr std::size_t first_digits = 6;

__extension__ using Wide = __int128;
__extension__ using WideSize = unsigned __int128;

/// number −= value · 2^shift.
void subtract_shifted(mpz_class& number, Wide value, unsigned shift) {
  if (value == 0) return;
  const auto size = static_cast<WideSize>(value < 0 ? -value : value);
  mpz_class shifted = static_cast<unsigned long>(size >> 64U);
  shifted <<= 64U;
  shifted += static_cast<unsigned long>(size);
  shifted <<= shift;
  if (value < 0) {
    number += shifted;
  } else {
    number -= shifted;
  }
}

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

/// The vector of fractions of which the numbers Σ_k digits[k][i] prime^k are the residues modulo
/// prime^(count of digits), over a small common denominator; false where there is none.
///
/// Source    [Wang, Guy, Davenport 1982, P-adic reconstruction of rational numbers]
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

}  // namespace

/// For each row, the exponent of the lowest bit of any entry.
void Basis::choose_exponents() {
  const std::size_t n = order();
  exponents_.assign(n, std::numeric_limits<int>::max());
  std::vector<int> high(n, std::numeric_limits<int>::min());
  for (const Column& column : columns_) {
    for (std::size_t i = 0; i < n; ++i) {
      if (column[i] == 0.0) continue;
      exponents_[i] = std::min(exponents_[i], parts_of(column[i]).exponent);
      high[i] = std::max(high[i], std::ilogb(column[i]));
    }
  }
  most_bits_ = 0;
  for (std::size_t i = 0; i < n; ++i) most_bits_ = std::max(most_bits_, high[i] - exponents_[i] + 1);
}

std::size_t Basis::bits() {
  choose_exponents();
  return order() * order() * static_cast<std::size_t>(most_bits_);
}

void Basis::make_integer() {
  if (integer_) return;
  choose_exponents();
  const std::size_t n = order();
  limbs_ = static_cast<std::size_t>(most_bits_ - 1) / limb_bits + 1;
  entries_.assign(limbs_ * n * n, 0);
  constexpr std::uint64_t mask = (std::uint64_t{1} << limb_bits) - 1;
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < n; ++i) {
      const Parts parts = parts_of(columns_[j][i]);
      if (parts.mantissa == 0) continue;
      const auto shift = static_cast<unsigned>(parts.exponent - exponents_[i]);
      const bool negative = parts.mantissa < 0;
      WideSize rest = static_cast<WideSize>(negative ? -parts.mantissa : parts.mantissa)
                      << (shift % limb_bits);
      for (std::size_t limb = shift / limb_bits; rest != 0; ++limb, rest >>= limb_bits) {
        const auto value = static_cast<std::int64_t>(static_cast<std::uint64_t>(rest) & mask);
        entries_[(limb * n + i) * n + j] = negative ? -value : value;
      }
    }
  }
  integer_ = true;
}

/// Bits of numerators and denominators together: by Hadamard's bound, of columns for one determinant and of
/// rows for the other.
double Basis::bound_of_bits(const Integers& right) const {
  const std::size_t n = order();
  std::vector<int> of_row(n, 0);
  double bits = 0.0;
  for (const Column& column : columns_) {
    int of_column = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (column[i] == 0.0) continue;
      const int size = std::ilogb(column[i]) - exponents_[i] + 1;
      of_column = std::max(of_column, size);
      of_row[i] = std::max(of_row[i], size);
    }
    bits += of_column;
  }
  for (const int size : of_row) bits += size;
  std::size_t of_right = 1;
  for (const mpz_class& value : right) of_right = std::max(of_right, mpz_sizeinbase(value.get_mpz_t(), 2));
  return 2.0 * bits + 2.0 * static_cast<double>(n + 1) * std::log2(static_cast<double>(n + 1)) +
         2.0 * static_cast<double>(of_right) + 128.0;
}

RationalVector Basis::solve(const Column& right, const Progress& progress) {
  make_integer();
  // If the right side has finer bits than its row of the matrix, one more power of two makes it an integer.
  int finer = 0;
  for (std::size_t i = 0; i < order(); ++i) {
    if (right[i] != 0.0) finer = std::max(finer, exponents_[i] - parts_of(right[i]).exponent);
  }
  Integers integers(order());
  for (std::size_t i = 0; i < order(); ++i) integers[i] = Dyadic(right[i]).over(exponents_[i] - finer);
  RationalVector result = lift(integers, System::plain, progress);
  result.denominator <<= static_cast<mp_bitcnt_t>(finer);
  return result;
}

RationalVector Basis::solve_transposed(const std::vector<int>& right, const Progress& progress) {
  make_integer();
  return lift(Integers(right.begin(), right.end()), System::transposed, progress);
}

RationalVector Basis::lift(const Integers& right, System system, const Progress& progress) const {
  const auto most = static_cast<std::size_t>(bound_of_bits(right) / 29.9) + 2;
  RationalVector result;
  std::vector<Residues> digits;
  Integers rest = right;
  for (std::size_t next = std::min(most, first_digits);; next = std::min(most, next + next / 2)) {
    while (digits.size() < next) {
      digits.push_back(next_digit(rest, system));
      subtract(rest, digits.back(), system);
      progress("solving exactly, digits", digits.size(), most);
    }
    if (reconstruct(digits, modulus_.prime(), result) && solves(result, right, system)) break;
    NORMSCOPE_ASSERT(next < most);
  }
  progress("solving exactly, digits", most, most);
  return result;
}

/// The integer matrix is diag(2^−exponents) B: the solution modulo the prime.
Basis::Residues Basis::next_digit(const Integers& rest, System system) const {
  Residues residues(order());
  for (std::size_t i = 0; i < residues.size(); ++i) {
    residues[i] = static_cast<std::uint32_t>(mpz_fdiv_ui(rest[i].get_mpz_t(), modulus_.prime()));
  }
  const auto scale = [this](Residues& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = modulus_.multiply(values[i], power_of_two(exponents_[i]));
    }
  };
  if (system == System::plain) {
    scale(residues);
    return apply_inverse(residues);
  }
  Residues result = apply_transposed_inverse(residues);
  scale(result);
  return result;
}

/// rest ← (rest − matrix digit) / prime, which is an integer.
void Basis::subtract(Integers& rest, const Residues& digit, System system) const {
  const std::size_t n = order();
  parallel_for(n, 1 + digit_grain / n, threads_, [&](std::size_t first, std::size_t last) {
    std::vector<Wide> totals(last - first);
    for (std::size_t limb = 0; limb < limbs_; ++limb) {
      const std::int64_t* matrix = entries_.data() + limb * n * n;
      std::fill(totals.begin(), totals.end(), 0);
      if (system == System::plain) {
        for (std::size_t i = first; i < last; ++i) {
          Wide total = 0;
          for (std::size_t j = 0; j < n; ++j) total += static_cast<Wide>(matrix[i * n + j]) * digit[j];
          totals[i - first] = total;
        }
      } else {
        for (std::size_t i = 0; i < n; ++i) {
          const auto factor = static_cast<std::int64_t>(digit[i]);
          for (std::size_t j = first; j < last; ++j) {
            totals[j - first] += static_cast<Wide>(matrix[i * n + j]) * factor;
          }
        }
      }
      for (std::size_t i = first; i < last; ++i) {
        subtract_shifted(rest[i], totals[i - first], static_cast<unsigned>(limb) * limb_bits);
      }
    }
    for (std::size_t i = first; i < last; ++i) {
      mpz_divexact_ui(rest[i].get_mpz_t(), rest[i].get_mpz_t(), modulus_.prime());
    }
  });
}

bool Basis::solves(const RationalVector& x, const Integers& right, System system) const {
  const std::size_t n = order();
  mpz_class total;
  mpz_class of_limb;
  for (std::size_t i = 0; i < n; ++i) {
    total = -x.denominator * right[i];
    for (std::size_t limb = 0; limb < limbs_; ++limb) {
      of_limb = 0;
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t at = system == System::plain ? i * n + j : j * n + i;
        const std::int64_t entry = entries_[limb * n * n + at];
        if (entry > 0) {
          mpz_addmul_ui(of_limb.get_mpz_t(), x.numerators[j].get_mpz_t(), static_cast<unsigned long>(entry));
        } else if (entry < 0) {
          mpz_submul_ui(of_limb.get_mpz_t(), x.numerators[j].get_mpz_t(), static_cast<unsigned long>(-entry));
        }
      }
      of_limb <<= limb * limb_bits;
      total += of_limb;
    }
    if (total != 0) return false;
  }
  return true;
}

}  // namespace normscope::proof::exact
