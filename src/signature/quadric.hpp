#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>

#include "row_slices.hpp"

namespace normscope::signature {

/// xᵀ A x + v·x + k as the unknown of a least squares problem; A symmetric.
struct Quadric {
  std::vector<double> matrix{};  ///< A (width × width), row-major
  std::vector<double> linear{};  ///< v
  double constant = 0.0;         ///< k

  explicit Quadric(std::size_t width = 0) : matrix(width * width), linear(width) {}
  void add(double factor, const Quadric& other);
  [[nodiscard]] double dot(const Quadric& other) const;
};

/// The linear map from quadrics to their values at given points, and its transpose, applied without forming
/// its matrix of rows × width²/2. Each takes about rows × width²/2 multiplications; a team shares the rows.
class Design {
 public:
  /// Shapes    points (slices.end() − slices.begin() × width): the rows of this member
  ///
  /// Requires  `points` outlive this
  Design(MatrixView<const double> points, const RowSlices& slices, unsigned threads)
      : points_(points), slices_(slices), threads_(threads) {}

  enum class Arithmetic { float32, float64 };

  [[nodiscard]] std::size_t rows() const { return slices_.rows(); }
  [[nodiscard]] std::size_t width() const { return points_.width(); }
  /// Values at all points, in every member.
  ///
  /// Accuracy  float32: a small multiple of 2⁻²⁴ of Σ |x_i A_ij x_j|; A x is computed in float32, x·A x in
  ///           float64 (test: Extract.FindsTheAxesOfTheWeights)
  void values(const Quadric& quadric, Arithmetic arithmetic, std::vector<double>& result) const;
  /// Σ_rows weight (x xᵀ, x, 1), with the trace of its matrix removed: the transpose of
  /// `values` on matrices without trace.
  ///
  /// Accuracy  float32: sums over at most 768 rows in float32, those in float64
  void transposed(const std::vector<double>& weights, Arithmetic arithmetic, Quadric& result) const;

 private:
  template <typename T>
  void values_of(const Quadric& quadric, std::vector<double>& result) const;
  template <typename T>
  void transposed_of(const std::vector<double>& weights, Quadric& result) const;
  /// Adds a block's part of the columns from `begin` to `end` of the transpose: matrix, linear part,
  /// constant.
  template <typename T>
  void add_columns(const RowSlices::Block& block, const std::vector<double>& weights, std::size_t begin,
                   std::size_t end, std::span<double> sums) const;

  [[nodiscard]] MatrixView<const double> block_of(const RowSlices::Block& block) const;

  MatrixView<const double> points_;
  RowSlices slices_;
  unsigned threads_;
};

}  // namespace normscope::signature
