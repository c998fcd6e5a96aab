#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/view.hpp>

namespace normscope::nets {

/// Class of each row, numbered from zero, and how many rows each has.
struct Classes {
  std::vector<std::size_t> of_row{};
  std::vector<std::size_t> sizes{};
};

/// The classes of `labels`.
///
/// Errors    Shape; Argument for less than two of them or an entry that is not finite
[[nodiscard]] Classes checked_classes(MatrixView<const double> x, std::span<const std::size_t> labels);

/// Mean of each class of one feature, compensated.
[[nodiscard]] std::vector<double> class_means(std::span<const double> feature, const Classes& classes);

/// Within-class and total sum of squares.
struct Squares {
  double within = 0.0;
  double total = 0.0;

  /// Within over total, in [0, 1]; NaN for none.
  [[nodiscard]] double ratio() const;
};

/// The sums of one centred feature.
[[nodiscard]] Squares squares_of(std::span<const double> feature, const Classes& classes);

/// Calls `body(index, feature)` for each column of `x`, which it may change, in any order.
void for_each_feature(MatrixView<const double> x, unsigned threads,
                      const std::function<void(std::size_t, std::span<double>)>& body);

/// The divisor of all features: the power of two at the largest difference of two entries of one feature, so
/// that squares neither overflow nor underflow.
[[nodiscard]] BinaryScale common_scale(MatrixView<const double> x, unsigned threads);

/// The same for one feature.
[[nodiscard]] BinaryScale scale_of(std::span<const double> feature);

/// Divides a feature and centres it; a constant feature becomes exactly zero, whatever the rounding of its
/// mean.
void center_feature(std::span<double> feature, const BinaryScale& scale);

}  // namespace normscope::nets
