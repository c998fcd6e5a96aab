#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/exact.hpp>
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
/// An upper bound of it.
[[nodiscard]] double size_of(std::span<const DoubleDouble> x);
/// The entries rounded to float64, row-major.
[[nodiscard]] std::vector<double> rounded(const Matrix& a);
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

}  // namespace normscope::verify
