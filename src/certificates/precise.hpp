#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <normscope/numeric/double_double.hpp>

/// Matrices in about twice the precision of float64. A sum of n products has an error of at most 16 (n + 1)
/// u² times the sum of their sizes; functions that state bounds add it (`hidden`).
namespace normscope::certificates {

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
/// The same for a positive semidefinite matrix: rows whose pivot is at most `least` are left zero.
[[nodiscard]] Matrix semidefinite_factor(const Matrix& a, double least);
/// x with L Lᵀ x = b.
[[nodiscard]] Column solve(const Matrix& factor, Column b);
/// A⁻¹, up to rounding; empty if a pivot is zero.
[[nodiscard]] std::optional<Matrix> inverse(Matrix a);

/// Error bound of sums of `terms` products, several in sequence, relative to the sizes of their terms.
[[nodiscard]] constexpr double hidden(std::size_t terms) {
  return 64.0 * static_cast<double>(terms + 8) * 0x1p-106;
}

}  // namespace normscope::certificates
