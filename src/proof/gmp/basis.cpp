#include "basis.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::proof::exact {
namespace {

/// The largest primes below 2^30.
constexpr std::array<std::uint32_t, 4> primes = {1073741789, 1073741783, 1073741741, 1073741723};
/// Exponents of a double's bits.
constexpr int least_exponent = -1074;
constexpr int most_exponent = 1023;
/// Number of multiplications from which another thread pays off.
constexpr std::size_t basis_grain = 200'000;

}  // namespace

Basis::Basis(const Column& diagonal, unsigned threads) : threads_(threads), modulus_(primes[0]) {
  const std::size_t n = diagonal.size();
  columns_.assign(n, Column(n, 0.0));
  inverse_.assign(n * n, 0);
  use_prime(primes[0]);
  for (std::size_t i = 0; i < n; ++i) {
    columns_[i][i] = diagonal[i];
    inverse_[i * n + i] = modulus_.inverse(residue(diagonal[i]));
  }
}

void Basis::use_prime(std::uint32_t prime) {
  modulus_ = Modulus(prime);
  powers_.assign(most_exponent - least_exponent + 1, modulus_.power(modulus_.inverse(2), -least_exponent));
  for (std::size_t i = 1; i < powers_.size(); ++i) powers_[i] = modulus_.multiply(powers_[i - 1], 2);
}

std::uint32_t Basis::power_of_two(int exponent) const {
  return powers_[static_cast<std::size_t>(exponent - least_exponent)];
}

std::uint32_t Basis::residue(double value) const {
  const Parts parts = parts_of(value);
  if (parts.mantissa == 0) return 0;
  const auto size = static_cast<std::uint64_t>(parts.mantissa < 0 ? -parts.mantissa : parts.mantissa);
  const std::uint32_t result = modulus_.multiply(modulus_.reduce(size), power_of_two(parts.exponent));
  return parts.mantissa < 0 ? modulus_.negative(result) : result;
}

Basis::Residues Basis::apply_inverse(const Residues& right) const {
  const std::size_t n = order();
  Residues result(n);
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): position is below n
  parallel_for(n, 1 + basis_grain / n, threads_, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const std::uint32_t* row = inverse_.data() + i * n;
      std::uint64_t total = 0;
      for (std::size_t j = 0; j < n;) {
        const std::size_t end = std::min(n, j + Modulus::products);
        for (; j < end; ++j) total += static_cast<std::uint64_t>(row[j]) * right[j];
        total = modulus_.reduce(total);
      }
      result[i] = static_cast<std::uint32_t>(total);
    }
  });
  return result;
}

Basis::Residues Basis::apply_transposed_inverse(const Residues& right) const {
  const std::size_t n = order();
  Residues result(n);
  parallel_for(n, 1 + basis_grain / n, threads_, [&](std::size_t first, std::size_t last) {
    std::vector<std::uint64_t> totals(last - first);
    for (std::size_t i = 0; i < n;) {
      const std::size_t end = std::min(n, i + Modulus::products);
      for (; i < end; ++i) {
        const std::uint32_t* row = inverse_.data() + i * n;
        const std::uint64_t factor = right[i];
        for (std::size_t j = first; j < last; ++j) totals[j - first] += factor * row[j];
      }
      for (std::uint64_t& total : totals) total = modulus_.reduce(total);
    }
    std::copy(totals.begin(), totals.end(), result.begin() + static_cast<std::ptrdiff_t>(first));
  });
  return result;
}

Basis::Residues Basis::image(const Column& column) const {
  Residues residues(order());
  for (std::size_t i = 0; i < residues.size(); ++i) residues[i] = residue(column[i]);
  return apply_inverse(residues);
}

void Basis::replace(std::size_t position, Column column, const Residues& image) {
  NORMSCOPE_ASSERT(image[position] != 0);
  const std::size_t n = order();
  std::uint32_t* pivot_row = inverse_.data() + position * n;
  const std::uint32_t factor = modulus_.inverse(image[position]);
  for (std::size_t j = 0; j < n; ++j) pivot_row[j] = modulus_.multiply(pivot_row[j], factor);
  parallel_for(n, 1 + basis_grain / n, threads_, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      if (i == position || image[i] == 0) continue;
      const std::uint64_t negative = modulus_.negative(image[i]);
      std::uint32_t* row = inverse_.data() + i * n;
      for (std::size_t j = 0; j < n; ++j) row[j] = modulus_.reduce(row[j] + negative * pivot_row[j]);
    }
  });
  columns_[position] = std::move(column);
  integer_ = false;
}

bool Basis::replace_anew(std::size_t position, Column column) {
  columns_[position] = std::move(column);
  integer_ = false;
  for (const std::uint32_t prime : primes) {
    if (prime == modulus_.prime()) continue;
    use_prime(prime);
    if (invert_anew()) return true;
  }
  return false;
}

/// Computed from the identity by exchanging each of its columns; the rows of the inverse are then in the
/// order in which pivots were found.
bool Basis::invert_anew() {
  const std::size_t n = order();
  const std::vector<Column> columns = columns_;
  inverse_.assign(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) inverse_[i * n + i] = 1;
  std::vector<std::size_t> place_of(n);
  std::vector<bool> taken(n);
  for (std::size_t column = 0; column < n; ++column) {
    const Residues residues = image(columns[column]);
    std::size_t place = 0;
    while (place < n && (taken[place] || residues[place] == 0)) ++place;
    if (place == n) return false;
    replace(place, columns[column], residues);
    taken[place] = true;
    place_of[column] = place;
  }
  columns_ = columns;
  const std::vector<std::uint32_t> found = inverse_;
  for (std::size_t column = 0; column < n; ++column) {
    std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(place_of[column] * n), n,
                inverse_.begin() + static_cast<std::ptrdiff_t>(column * n));
  }
  return true;
}

}  // namespace normscope::proof::exact
