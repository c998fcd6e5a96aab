#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <Eigen/Core>

#include <normscope/core/exact.hpp>
#include <normscope/core/view.hpp>

#include "rows.hpp"

namespace normscope::selectability {

/// Largest distance of each coordinate of the keys from `center`.
[[nodiscard]] inline std::vector<double> extents_of(MatrixView<const double> keys,
                                                    std::span<const double> center) {
  std::vector<double> result(keys.width());
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    const std::span<const double> key = keys.row(row);
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = std::max(result[i], std::abs(key[i] - center[i]));
    }
  }
  return result;
}

/// Whether distances from the hull of the other keys, one per column, all count as zero.
[[nodiscard]] inline bool are_none(std::span<const double> distances, std::span<const double> extents,
                                   double tolerance) {
  return distances.size() == extents.size() &&
         std::equal(distances.begin(), distances.end(), extents.begin(),
                    [tolerance](double distance, double extent) { return distance <= tolerance * extent; });
}

/// The distinct keys, relative to their mean, longest first, divided by a power of two; columns of very
/// different extents each by its own, which changes no answer. A `place` is an index in this order. Products
/// use a float32 copy; `lead` uses the keys themselves.
class KeySet {
 public:
  static constexpr std::size_t none = no_duplicate;

  KeySet(MatrixView<const double> keys, unsigned threads);

  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] std::size_t width() const { return keys_.width(); }
  [[nodiscard]] MatrixView<const double> keys() const { return keys_; }
  [[nodiscard]] std::size_t row(std::size_t place) const { return rows_[place]; }
  /// Another row equal to `row`, or `none`.
  [[nodiscard]] std::size_t duplicate(std::size_t row) const { return duplicates_[row]; }
  [[nodiscard]] const std::vector<double>& center() const { return center_; }
  [[nodiscard]] double scale() const { return scale_; }
  /// Largest distance of each coordinate from the center.
  [[nodiscard]] const std::vector<double>& extents() const { return extents_; }
  /// The exponent of the power of two, if all columns are divided by the same one.
  [[nodiscard]] std::optional<int> exponent() const;
  /// z_i = 2^−exponent_i (k_i − center_i).
  [[nodiscard]] double scaled(double difference, std::size_t column) const {
    return difference * factors_[column];
  }

  /// An upper bound of |z|, exact up to rounding.
  [[nodiscard]] double length(std::size_t place) const { return lengths_[place]; }
  [[nodiscard]] const float* values(std::size_t place) const { return values_.data() + place * width(); }
  void centred(std::size_t place, std::span<double> z) const;
  /// queryᵀ(z_i − z_j), accurate to a few roundings of the result.
  [[nodiscard]] Bounded lead(std::span<const double> query, std::size_t i, std::size_t j) const;
  /// Error bound of a float32 product of a vector of length `a` with a z of length `b`, in any order of
  /// summation, including the rounding of z.
  [[nodiscard]] double product_error(double a, double b) const;

 private:
  MatrixView<const double> keys_;
  std::vector<std::size_t> duplicates_{};
  std::vector<std::size_t> rows_{};
  std::vector<double> center_{};
  double scale_ = 0.0;
  std::vector<double> extents_{};
  std::vector<double> factors_{};  ///< 2^−exponent of each column
  std::vector<double> lengths_{};
  std::vector<float> values_{};
};

/// The directions in which the keys of a key set extend, and their extents.
class Span {
 public:
  /// Leaves out directions whose extent is below `rank_tolerance` times the largest.
  Span(const KeySet& key_set, double rank_tolerance);

  [[nodiscard]] Eigen::Index rank() const { return rank_; }
  /// Coordinates in the span in which the keys have similar extent in every direction.
  [[nodiscard]] Eigen::VectorXd whitened(const Eigen::VectorXd& vector) const;
  /// The query that scores keys as `direction` scores their whitened coordinates.
  [[nodiscard]] Eigen::VectorXd query(const Eigen::VectorXd& direction) const;
  /// The projection of a query onto the span.
  [[nodiscard]] Eigen::VectorXd inside(const Eigen::VectorXd& query) const;

 private:
  Eigen::Index rank_ = 0;
  Eigen::MatrixXd basis_{};     ///< orthonormal columns; empty for the identity
  Eigen::MatrixXd triangle_{};  ///< T with TᵀT the mean second moment in the span
};

}  // namespace normscope::selectability
