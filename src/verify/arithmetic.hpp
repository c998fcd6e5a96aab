#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmpxx.h>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>

/// Numbers that are not exact, each with a bound of its error: `Enclosure` is the one type for them. Matrices
/// are in about twice the precision of float64 without a bound an entry: a sum of n products has an error of
/// at most 16 (n + 1) u² times the sum of their sizes, and functions of matrices add it (`hidden`).
namespace normscope::verify {

inline constexpr double unit = 0x1p-53;
/// Tolerance for a stated bound, so that one rounded to its last bit is not rejected.
inline constexpr double last_bits = 64.0 * unit;

struct Weight {
  std::size_t index = 0;
  double weight = 0.0;
};

/// An upper bound of a positive number that was computed by a few operations, each rounded once.
[[nodiscard]] inline double up(double positive) { return positive * (1.0 + 16.0 * unit); }

/// Relative rounding error of the library's exp, log and tanh, with a margin.
inline constexpr double elementary = 8.0 * unit;
/// Relative rounding error of one double-double operation; see `DoubleDouble`.
inline constexpr double fine = 16.0 * unit * unit;
/// More than the error of a product or sum by underflow.
inline constexpr double underflow = std::numeric_limits<double>::min();

/// All numbers that are at most `error` from `value`; sums, products and quotients round outwards.
struct Enclosure {
  DoubleDouble value{};
  double error = 0.0;

  [[nodiscard]] static Enclosure of(const Bounded& number) { return {number.value, number.error}; }

  [[nodiscard]] bool is_zero() const { return value.high == 0.0 && error == 0.0; }
  /// At least its absolute value.
  [[nodiscard]] double size() const { return std::abs(value.high) * (1.0 + 4.0 * unit) + error; }
  /// Doubles below and above, rounded outwards; the number itself where it is a double.
  [[nodiscard]] double low() const { return value.high - spread(); }
  [[nodiscard]] double high() const { return value.high + spread(); }

  friend Enclosure operator-(const Enclosure& a, const Enclosure& b);
  friend Enclosure operator*(const Enclosure& a, const Enclosure& b);
  friend Enclosure operator*(const Enclosure& a, double b) { return a * Enclosure{DoubleDouble(b)}; }
  friend Enclosure operator/(const Enclosure& a, const Enclosure& b);

 private:
  /// The error with that of rounding to a double.
  [[nodiscard]] double spread() const {
    const double beside = error + std::abs(value.low);
    return beside > 0.0 ? up(beside) + 2.0 * unit * std::abs(value.high) : 0.0;
  }
};

/// A lower and an upper bound that have proofs of their own, as results state them.
struct Ends {
  double lower = 0.0;
  double upper = 0.0;
};

/// A sum of products with a bound of its rounding error: each of n additions contributes `fine` times the
/// partial sum.
class EnclosureSum {
 public:
  void add(const DoubleDouble& a, double b) {
    if (a.high != 0.0 && b != 0.0) add(Enclosure{a * DoubleDouble(b), underflow});
  }
  void add(const Enclosure& term) {
    if (term.is_zero()) return;
    sum_ += term.value;
    size_ += std::abs(term.value.high);
    error_ += term.error;
    ++terms_;
  }
  /// Exact if all terms are zero.
  [[nodiscard]] Enclosure result() const {
    if (terms_ == 0.0) return {};
    const double terms = terms_ + 4.0;
    return {sum_, 2.0 * terms * fine * size_ + error_ * (1.0 + terms * unit) + 4.0 * terms * underflow};
  }

 private:
  DoubleDouble sum_{};
  double size_ = 0.0;
  double error_ = 0.0;
  double terms_ = 0.0;
};

/// The mean of some numbers.
///
/// Requires  values not empty
[[nodiscard]] Enclosure mean_of(std::span<const Enclosure> values);

/// An upper bound of the Euclidean length of every vector within the bounds, up to `unit` of it.
[[nodiscard]] double length_at_most(std::span<const Enclosure> vector);

/// Σ λ_j, more than 0; none unless every λ is finite and not negative and none is on the row `excluded`.
[[nodiscard]] std::optional<Enclosure> total_of(const std::vector<Weight>& weights, std::size_t excluded);

/// Σ λ_j (x − row_j), entry by entry.
[[nodiscard]] std::vector<Enclosure> weighted_difference(std::span<const double> x,
                                                         MatrixView<const double> rows,
                                                         const std::vector<Weight>& weights);

using Column = std::vector<DoubleDouble>;

struct Matrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  Column values{};

  Matrix() = default;
  Matrix(std::size_t row_count, std::size_t column_count)
      : rows(row_count), columns(column_count), values(row_count * column_count) {}
  [[nodiscard]] DoubleDouble& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  [[nodiscard]] const DoubleDouble& at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

[[nodiscard]] DoubleDouble dot(std::span<const DoubleDouble> a, std::span<const DoubleDouble> b);
[[nodiscard]] Matrix product(const Matrix& a, const Matrix& b);
/// A Bᵀ.
[[nodiscard]] Matrix product_transposed(const Matrix& a, const Matrix& b);
[[nodiscard]] Column product(const Matrix& a, std::span<const DoubleDouble> x);
/// Aᵀ x.
[[nodiscard]] Column transposed_product(const Matrix& a, std::span<const DoubleDouble> x);
[[nodiscard]] Matrix transposed(const Matrix& a);
/// Σ x², of a vector or of a matrix's entries.
[[nodiscard]] DoubleDouble square_of(std::span<const DoubleDouble> x);
/// The square root of that, rounded to a double.
[[nodiscard]] double length_of(std::span<const DoubleDouble> x);
[[nodiscard]] Column to_column(std::span<const double> x);

/// L with L Lᵀ = A for a symmetric matrix; empty if a pivot is not positive.
///
/// Source    [Rump 2006, Verification of positive definiteness]: a factor of A − δI found in arithmetic that
///           rounds by v proves A positive definite where δ >= 2 (n + 2) v tr A
[[nodiscard]] std::optional<Matrix> cholesky(const Matrix& a);
/// That factor of a positive semidefinite matrix: rows whose pivot is at most `least` are left zero.
[[nodiscard]] Matrix semidefinite_factor(const Matrix& a, double least);
/// x with L Lᵀ x = b.
[[nodiscard]] Column solve(const Matrix& factor, Column b);
/// A⁻¹, up to rounding; empty if a pivot is zero.
[[nodiscard]] std::optional<Matrix> inverse(Matrix a);

/// Error bound of sums of `terms` products, several in sequence, relative to the sizes of their terms.
[[nodiscard]] constexpr double hidden(std::size_t terms) {
  return 64.0 * static_cast<double>(terms + 8) * 0x1p-106;
}

// Arithmetic without rounding, and what is decided by it: every double is an integer times a power of two,
// and so are sums and products of doubles. Nothing underflows, and no comparison has a tolerance.

/// number · 2^exponent.
class Exact {
 public:
  Exact() = default;
  /// Requires  a finite value
  // NOLINTNEXTLINE(google-explicit-constructor): every double is such a number
  Exact(double value);
  /// An integer in decimal digits, with or without a sign.
  ///
  /// Requires  digits as the schemas of results allow
  [[nodiscard]] static Exact of_digits(const std::string& digits);

  [[nodiscard]] static Exact of(const mpz_class& integer) { return {integer, 0}; }

  [[nodiscard]] int sign() const { return sgn(number_); }
  /// Two integers, numerator and denominator > 0, whose quotient it is.
  [[nodiscard]] std::pair<mpz_class, mpz_class> fraction() const;
  Exact& operator+=(const Exact& other);
  Exact& operator-=(const Exact& other) { return *this += -other; }
  friend Exact operator-(const Exact& a) { return {-a.number_, a.exponent_}; }
  friend Exact operator+(Exact a, const Exact& b) { return a += b; }
  friend Exact operator-(Exact a, const Exact& b) { return a -= b; }
  friend Exact operator*(const Exact& a, const Exact& b) {
    return {a.number_ * b.number_, a.exponent_ + b.exponent_};
  }
  friend bool operator==(const Exact& a, const Exact& b) { return (a - b).sign() == 0; }
  friend bool operator<(const Exact& a, const Exact& b) { return (a - b).sign() < 0; }
  friend bool operator<=(const Exact& a, const Exact& b) { return (a - b).sign() <= 0; }
  /// a times the length of a vector with squares of that sum is at most b.
  [[nodiscard]] static bool is_product_at_most(const Exact& a, const Exact& square, const Exact& b);

 private:
  Exact(mpz_class number, long exponent) : number_(std::move(number)), exponent_(exponent) {}

  mpz_class number_{};
  long exponent_ = 0;
};

[[nodiscard]] Exact exact_dot(std::span<const double> a, std::span<const double> b);
[[nodiscard]] Exact exact_square(std::span<const double> a);
[[nodiscard]] Exact exact_square(const std::vector<Exact>& a);
[[nodiscard]] Exact exact_total(const std::vector<Weight>& weights);
/// Σ w row, entry by entry.
[[nodiscard]] std::vector<Exact> exact_sum(MatrixView<const double> rows, const std::vector<Weight>& weights);

/// A row and the integer in front of it.
struct Numerator {
  std::size_t row = 0;
  std::string digits{};
};
/// Whether normalᵀa > normalᵀb for every row a of A and b of B, except for row `skipped` of B.
[[nodiscard]] bool separates(const std::vector<std::string>& normal, MatrixView<const double> a,
                             MatrixView<const double> b, std::size_t skipped);
/// Whether numerators on rows of A and of B sum to the denominator each, and Σ numerator · row is equal for
/// both.
[[nodiscard]] bool meet(const std::vector<Numerator>& of_a, const std::vector<Numerator>& of_b,
                        const std::string& denominator, MatrixView<const double> a,
                        MatrixView<const double> b);

/// A symmetric matrix of integers, row-major.
struct IntegerForm {
  std::size_t width = 0;
  std::vector<mpz_class> entries{};

  [[nodiscard]] mpz_class& at(std::size_t i, std::size_t j) { return entries[i * width + j]; }
  [[nodiscard]] const mpz_class& at(std::size_t i, std::size_t j) const { return entries[i * width + j]; }
};

/// Σ (x − mean)(x − mean)ᵀ within each class and over all rows, in units of one power of two and multiplied
/// by one common multiple of the numbers of rows.
struct Scatter {
  IntegerForm within{};
  IntegerForm total{};
};
/// None for matrices beyond what elimination takes seconds for: 64 columns, 2¹⁴ rows, and entries whose bits
/// times the width exceed 2¹⁶.
[[nodiscard]] std::optional<Scatter> exact_scatter(const std::vector<MatrixView<const double>>& classes);

/// The rank of a positive semidefinite form; none if it has a negative eigenvalue. By elimination without
/// fractions, with the largest pivot of the diagonal.
///
/// Source    [Bareiss 1968]
[[nodiscard]] std::optional<std::size_t> semidefinite_rank(IntegerForm form);

/// A lower bound of the rank of the differences of all rows from the first: their rank modulo 2⁶¹ − 1, in
/// which most ranks are the same. Stops early where that takes too long.
[[nodiscard]] std::size_t rank_of_differences_at_least(const std::vector<MatrixView<const double>>& classes);

/// Bounds the error of a product of two vectors in float32, both rounded to it, relative to the product of
/// their lengths; what underflows apart.
[[nodiscard]] constexpr double single_rounding(std::size_t width) {
  const double terms = static_cast<double>(width);
  return 1.01 * (terms + terms / 256.0 + 8.0) * 0x1p-24;
}

/// Calls `visit(i)` for each i < count for which `is_clear(i)` is false. Groups are compared at once, which
/// the compiler vectorizes.
template <typename IsClear, typename Visit>
void each_open(std::size_t count, const IsClear& is_clear, const Visit& visit) {
  constexpr std::size_t lanes = 16;
  for (std::size_t begin = 0; begin < count; begin += lanes) {
    const std::size_t end = std::min(count, begin + lanes);
    bool all = true;
    for (std::size_t i = begin; i < end; ++i) all = all & is_clear(i);
    for (std::size_t i = begin; !all && i < end; ++i) {
      if (!is_clear(i)) visit(i);
    }
  }
}

/// The claim "along `direction` the row `index` scores higher than every other row by at least `least`",
/// where the score of row x_j is directionᵀ x_j.
struct LeadClaim {
  std::size_t index = 0;
  std::vector<double> direction{};
  std::vector<double> rest{};   ///< of each entry, what its rounding to a double leaves; empty if nothing
  std::vector<double> error{};  ///< of each entry with its rest; empty if it is exact
  /// More than 0: a lead that is at least this much proves the claim, by a bound of its rounding.
  double least = 0.0;
};

/// Decides whether claim `claim` leads row `row` as claimed, without rounding.
using DecideLead = std::function<bool(std::size_t claim, std::size_t row)>;

/// For each claim, whether it holds for all rows but its own. One product in float32 with an error bound,
/// then sums in float64 and in twice its precision; rows that these leave open are decided by `decide`, or,
/// without one, against the claim.
///
/// Errors    Cancelled
///
/// Cost      2 n width operations per claim
[[nodiscard]] std::vector<char> proved_leads(MatrixView<const double> rows,
                                             const std::vector<LeadClaim>& claims, const DecideLead& decide,
                                             unsigned threads, const Progress& progress);

/// Whether the claim holds for those rows, other than its own, in float64 and twice its precision; rows that
/// these leave open are decided by `decide`.
[[nodiscard]] bool is_proved_lead(MatrixView<const double> rows, const LeadClaim& claim,
                                  std::span<const std::size_t> others,
                                  const std::function<bool(std::size_t row)>& decide);

}  // namespace normscope::verify
