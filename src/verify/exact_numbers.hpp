#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmpxx.h>

#include <normscope/core/view.hpp>

#include "arithmetic.hpp"

/// Arithmetic without rounding, and what is decided by it: every double is an integer times a power of two,
/// and so are sums and products of doubles. Nothing underflows, and no comparison has a tolerance.
namespace normscope::verify {

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

}  // namespace normscope::verify
