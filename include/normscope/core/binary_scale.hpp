#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope {

/// The largest |value|, 0 for none; NaN if one is NaN.
[[nodiscard]] inline double largest_size(std::span<const double> values) {
  double largest = 0.0;
  for (const double value : values) {
    if (!(std::abs(value) <= largest)) largest = std::abs(value);
    if (std::isnan(largest)) return largest;
  }
  return largest;
}

[[nodiscard]] inline double largest_size(MatrixView<const double> matrix) {
  double largest = 0.0;
  for (std::size_t row = 0; row < matrix.rows(); ++row) {
    const double size = largest_size(matrix.row(row));
    if (!(size <= largest)) largest = size;
    if (std::isnan(largest)) return largest;
  }
  return largest;
}

/// A power of two by which numbers are divided so that the largest is in [1, 2). Squares and products of
/// numbers near 1 neither overflow nor underflow, and the division rounds only numbers that are far smaller.
/// Results are multiplied back.
class BinaryScale {
 public:
  /// One.
  BinaryScale() : BinaryScale(0) {}
  [[nodiscard]] static BinaryScale of_exponent(int exponent) { return BinaryScale(exponent); }
  /// The power of two at or below |largest|; one for zero and for numbers that are not finite.
  [[nodiscard]] static BinaryScale of(double largest) {
    return BinaryScale(largest != 0.0 && std::isfinite(largest) ? std::ilogb(largest) : 0);
  }
  [[nodiscard]] static BinaryScale of(std::span<const double> values) { return of(largest_size(values)); }
  [[nodiscard]] static BinaryScale of(MatrixView<const double> matrix) { return of(largest_size(matrix)); }

  [[nodiscard]] int exponent() const { return exponent_; }
  [[nodiscard]] bool is_one() const { return exponent_ == 0; }
  /// Whether numbers of this size need no scaling: sums of products of four of them do not overflow, and such
  /// products of numbers 2⁻¹⁰⁰ times as large do not underflow.
  [[nodiscard]] bool is_safe() const { return exponent_ >= -100 && exponent_ <= 200; }

  /// value / 2^exponent.
  ///
  /// Accuracy  exact, or off by less than 2⁻¹⁰⁷⁴ where the quotient is below 2⁻¹⁰²²; with the scale `of`
  ///           numbers, that is 2⁻¹⁰⁷⁴ of the largest (test: BinaryScale.RoundsOnlyWhatUnderflows)
  [[nodiscard]] double divide(double value) const { return value * down_[0] * down_[1]; }
  /// value · 2^exponent; ±infinity if that exceeds a double's range.
  ///
  /// Accuracy  as `divide`
  [[nodiscard]] double multiply(double value) const { return value * up_[0] * up_[1]; }

  void divide(std::span<double> values) const {
    for (double& value : values) value = divide(value);
  }
  void multiply(std::span<double> values) const {
    for (double& value : values) value = multiply(value);
  }
  /// The quotients of a matrix, row by row without gaps.
  [[nodiscard]] std::vector<double> divided(MatrixView<const double> matrix) const {
    std::vector<double> result(matrix.rows() * matrix.width());
    auto to = result.begin();
    for (std::size_t row = 0; row < matrix.rows(); ++row) {
      for (const double value : matrix.row(row)) *to++ = divide(value);
    }
    return result;
  }

 private:
  // In two factors: a single one would overflow from exponent 1023 on, and round below −1022.
  explicit BinaryScale(int exponent)
      : exponent_(exponent),
        down_{std::scalbn(1.0, -(exponent / 2)), std::scalbn(1.0, -(exponent - exponent / 2))},
        up_{std::scalbn(1.0, exponent / 2), std::scalbn(1.0, exponent - exponent / 2)} {}

  int exponent_;
  double down_[2];
  double up_[2];
};

// The sizes of numbers that the solvers accept. Numbers of models are far within these limits; beyond them,
// squares and products of doubles overflow or lose their digits. A power of two times all numbers, or times
// a column of points, changes no answer.

/// The largest number accepted, 1.3e30.
inline constexpr double largest_accepted = 0x1p100;
/// The smallest scale of logits accepted, 7.9e-31.
inline constexpr double least_accepted = 0x1p-100;
/// The smallest difference between the largest and the smallest entry of a column, 6.2e-61, unless it is 0.
/// The smallest positive float32 is larger.
inline constexpr double least_extent = 0x1p-200;

/// Refuses points with a number above `largest_accepted` or a column that extends over less than
/// `least_extent`. `who` begins the message.
///
/// Shapes    sets of rows of one width
///
/// Errors    Argument, for numbers that are not finite, too
///
/// Cost      O(rows width)
void expect_accepted(std::string_view who, std::initializer_list<MatrixView<const double>> sets);

/// Refuses a scale of logits above `largest_accepted` or, unless it is 0, below `least_accepted`.
///
/// Errors    Argument
void expect_accepted_logits(std::string_view who, double scale);

}  // namespace normscope
