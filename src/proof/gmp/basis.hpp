#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <normscope/core/parallel.hpp>

#include "dyadic.hpp"

namespace normscope::proof::exact {

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

/// numerators / denominator, the denominator positive.
struct RationalVector {
  std::vector<mpz_class> numerators{};
  mpz_class denominator = 1;
};

/// A regular matrix of doubles whose columns are exchanged one at a time, and exact solutions of its systems:
/// the inverse is kept modulo a prime, and solutions are lifted from it digit by digit.
///
/// Source    [Dixon 1982, Exact solution of linear equations using p-adic expansions]
class Basis {
 public:
  using Column = std::vector<double>;
  using Residues = std::vector<std::uint32_t>;

  /// diag(diagonal), none of which is 0.
  Basis(const Column& diagonal, unsigned threads);

  [[nodiscard]] std::size_t order() const { return columns_.size(); }
  /// B⁻¹ column modulo the prime. An entry that is not 0 modulo the prime is not 0.
  [[nodiscard]] Residues image(const Column& column) const;
  /// Exchanges a column whose `image` is not 0 at `position`.
  void replace(std::size_t position, Column column, const Residues& image);
  /// Exchanges a column whose image is 0 at `position` although its entry in B⁻¹ column is not: under another
  /// prime. False if none of a few primes allows it.
  [[nodiscard]] bool replace_anew(std::size_t position, Column column);

  /// B⁻¹ right.
  [[nodiscard]] RationalVector solve(const Column& right, const Progress& progress);
  /// y with Bᵀ y = right: y_i is numerators[i] 2^shift(i) / denominator.
  [[nodiscard]] RationalVector solve_transposed(const std::vector<int>& right, const Progress& progress);
  [[nodiscard]] long shift(std::size_t row) const { return -static_cast<long>(exponents_[row]); }

  /// Bits of the integer matrix that `solve` works with.
  [[nodiscard]] std::size_t bits();

 private:
  __extension__ using Wide = __int128;
  using Integers = std::vector<mpz_class>;
  enum class System { plain, transposed };

  void use_prime(std::uint32_t prime);
  [[nodiscard]] std::uint32_t power_of_two(int exponent) const;
  [[nodiscard]] std::uint32_t residue(double value) const;
  [[nodiscard]] Residues apply_inverse(const Residues& right) const;
  [[nodiscard]] Residues apply_transposed_inverse(const Residues& right) const;
  [[nodiscard]] bool invert_anew();

  void choose_exponents();
  /// Entries times 2^−exponents_[row], as signed digits to the base 2^48.
  void make_integer();
  [[nodiscard]] double bound_of_bits(const Integers& right) const;
  [[nodiscard]] RationalVector lift(const Integers& right, System system, const Progress& progress) const;
  [[nodiscard]] Residues next_digit(const Integers& rest, System system) const;
  void subtract(Integers& rest, const Residues& digit, System system) const;
  [[nodiscard]] bool solves(const RationalVector& x, const Integers& right, System system) const;

  unsigned threads_;
  std::vector<Column> columns_{};
  Modulus modulus_;
  std::vector<std::uint32_t> powers_{};   ///< of two, modulo the prime
  std::vector<std::uint32_t> inverse_{};  ///< B⁻¹ modulo the prime, row after row
  bool integer_ = false;                  ///< whether the members below belong to the current columns
  std::vector<int> exponents_{};
  int most_bits_ = 0;
  std::size_t limbs_ = 0;
  std::vector<std::int64_t> entries_{};  ///< (limb, row, column)
};

}  // namespace normscope::proof::exact
