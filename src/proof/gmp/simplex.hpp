#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmpxx.h>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/proof/separate.hpp>

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

/// Two sets of rows, in the coordinates that vary; rows are numbered through both, those of A first.
class HullPair {
 public:
  HullPair(MatrixView<const double> a, MatrixView<const double> b, std::span<const std::size_t> left_out);

  [[nodiscard]] std::size_t rows() const { return a_.rows() + b_.rows(); }
  [[nodiscard]] std::size_t width() const { return a_.width(); }
  [[nodiscard]] bool is_of_a(std::size_t row) const { return row < a_.rows(); }
  [[nodiscard]] bool is_left_out(std::size_t row) const { return left_out_[row]; }
  [[nodiscard]] std::span<const double> row(std::size_t row) const {
    return is_of_a(row) ? a_.row(row) : b_.row(row - a_.rows());
  }
  /// Coordinates in which some row differs from the first one.
  [[nodiscard]] const std::vector<std::size_t>& varying() const { return varying_; }
  /// Column of the linear program: the varying coordinates, negative for B, and to which set the row belongs.
  [[nodiscard]] Basis::Column column(std::size_t row) const;
  /// For each row of a system, a power of two of the size of its entries.
  [[nodiscard]] Basis::Column units() const;

 private:
  MatrixView<const double> a_;
  MatrixView<const double> b_;
  std::vector<bool> left_out_{};
  std::vector<std::size_t> varying_{};
};

/// Σ w_i x_i over the varying coordinates of the rows x: exactly, or faster with a bound of the rounding
/// error.
class Functional {
 public:
  Functional(const HullPair& hulls, std::vector<Dyadic> weights);

  [[nodiscard]] const std::vector<Dyadic>& weights() const { return weights_; }
  [[nodiscard]] Dyadic exact(std::size_t row) const;
  /// exact(row) − exact(0), in units of 2^`unit_`.
  [[nodiscard]] Bounded difference(std::size_t row) const;
  /// A value in the same units.
  [[nodiscard]] Bounded in_units(const Dyadic& value) const;
  [[nodiscard]] const Dyadic& at_first() const { return at_first_; }

 private:
  const HullPair& hulls_;
  std::vector<Dyadic> weights_;
  long unit_ = 0;                  ///< exponent of a power of two above all weights
  std::vector<double> rounded_{};  ///< weights in units of 2^`unit_`; empty if they exceed a double's range
  Dyadic at_first_{};
};

/// The minimum of `functional` over A minus its maximum over B, exactly.
[[nodiscard]] Dyadic gap(const HullPair& hulls, const Functional& functional, unsigned threads);

/// Phase 1 of the simplex method in rational arithmetic for Σλa = Σμb, Σλ = Σμ = 1, λ, μ >= 0. A basis
/// consists of rows of the sets and, if these do not span the space, artificial columns. The cost is the sum
/// of the magnitudes of all negative weights and all artificial values. Bland's rule is used while pivots do
/// not decrease it.
///
/// Source    [Dantzig 1963], [Bland 1977]
class Simplex {
 public:
  Simplex(const HullPair& hulls, const ExactLimits& limits, unsigned threads, const Progress& progress);

  /// Takes the row into the basis instead of an artificial column, unless it depends on those in it.
  void begin_with(std::size_t row);

  struct Outcome {
    std::vector<std::pair<std::size_t, mpz_class>> weights{};  ///< a common point: numerators by row
    mpz_class denominator{};
    std::optional<std::vector<Dyadic>> normal{};  ///< or the normal of a separating hyperplane
    std::string reason{};                         ///< or why neither was found
    std::size_t pivots = 0;
  };
  [[nodiscard]] Outcome solve();

 private:
  static constexpr std::size_t artificial = static_cast<std::size_t>(-1);

  /// Signs with which basic values count in the cost, and whether any counts.
  [[nodiscard]] std::vector<int> costs(const RationalVector& values, bool& feasible) const;
  [[nodiscard]] std::optional<std::size_t> entering(const Functional& functional, const Dyadic& of_a,
                                                    const Dyadic& of_b, bool least_index) const;
  [[nodiscard]] std::size_t leaving(const RationalVector& values, const RationalVector& direction) const;
  [[nodiscard]] std::string exceeded_limit(std::size_t pivots);
  [[nodiscard]] bool exchange(std::size_t position, std::size_t row);

  const HullPair& hulls_;
  const ExactLimits& limits_;
  unsigned threads_;
  const Progress& progress_;
  Basis basis_;
  std::vector<std::size_t> row_at_{};  ///< by position in the basis
  std::vector<bool> is_basic_{};       ///< by row
};

}  // namespace normscope::proof::exact
