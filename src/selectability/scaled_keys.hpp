#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/numeric/binary_scale.hpp>
#include <normscope/selectability/select.hpp>

namespace normscope::selectability {

/// Distances between keys whose entries are at most this are within a double's range, whatever the width.
inline constexpr double largest_entry = 0x1p1000;
/// Keys below are close to subnormal numbers, whose relative errors have no bound.
inline constexpr double least_entry = 0x1p-1010;

/// Keys divided by a power of two; see `scaled_keys`.
struct ScaledKeys {
  BinaryScale by{};
  std::vector<double> values{};
  std::size_t rows = 0;
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), rows, width}; }
  [[nodiscard]] double lower(double bound) const {
    return std::nextafter(by.multiply(bound), -std::numeric_limits<double>::infinity());
  }
  [[nodiscard]] double upper(double bound) const {
    return std::nextafter(by.multiply(bound), std::numeric_limits<double>::infinity());
  }
  /// Converts a verdict on the scaled keys to the original keys.
  [[nodiscard]] Selection divided(Selection selection) const;
  /// The inverse conversion.
  [[nodiscard]] Selection multiplied(Selection selection) const;
};

/// The keys divided by a power of two, if they are too large or too small for products.
///
/// Errors    Argument if the largest entry is not 0 and outside `least_entry`, `largest_entry`
[[nodiscard]] std::optional<ScaledKeys> scaled_keys(MatrixView<const double> keys);

}  // namespace normscope::selectability
