#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/core/random.hpp>
#include <normscope/norm/kernels.hpp>

#include "support/norms.hpp"

namespace normscope::norm::test {

inline double number(double value) { return value; }
inline double number(float value) { return static_cast<double>(value); }
inline double number(Bfloat16 value) { return static_cast<double>(to_float(value)); }
inline double number(Float16 value) { return static_cast<double>(to_float(value)); }

template <typename T>
T element(double value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return to_bfloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

/// Rounding of Wide<T>, half a unit of T's last place, and the least positive T.
template <typename T>
inline constexpr double unit = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
template <typename T>
inline constexpr double half_place = std::is_same_v<T, Bfloat16>
                                         ? 0x1p-8
                                         : (std::is_same_v<T, Float16> ? 0x1p-11 : 0.0);
template <typename T>
inline constexpr double least = std::is_same_v<T, double>     ? 0x1p-1074
                                : std::is_same_v<T, float>    ? 0x1p-149
                                : std::is_same_v<T, Bfloat16> ? 0x1p-133
                                                              : 0x1p-24;
template <typename T>
inline constexpr double largest = std::is_same_v<T, double>    ? 0x1p1000
                                  : std::is_same_v<T, Float16> ? 60000.0
                                                               : 0x1p125;

/// The largest finite T.
template <typename T>
T highest() {
  if constexpr (std::is_floating_point_v<T>) {
    return std::numeric_limits<T>::max();
  } else {
    return T{std::is_same_v<T, Bfloat16> ? std::uint16_t{0x7f7f} : std::uint16_t{0x7bff}};
  }
}

/// Rows of T in a memory of their own: `offset` elements before the first, `gap` between them.
template <typename T>
struct Rows {
  Rows(std::size_t row_count, std::size_t row_width, std::size_t gap = 0, std::size_t first = 0)
      : rows(row_count),
        width(row_width),
        stride(row_width + gap),
        offset(first),
        values(first + row_count * stride, element<T>(77.0)) {}

  [[nodiscard]] MatrixView<T> view() { return {values.data() + offset, rows, width, stride}; }
  [[nodiscard]] MatrixView<const T> view() const { return {values.data() + offset, rows, width, stride}; }
  T& at(std::size_t row, std::size_t i) { return values[offset + row * stride + i]; }
  [[nodiscard]] const T& at(std::size_t row, std::size_t i) const {
    return values[offset + row * stride + i];
  }
  void set(std::size_t row, const std::vector<double>& entries) {
    for (std::size_t i = 0; i < width; ++i) at(row, i) = element<T>(entries[i]);
  }

  std::size_t rows, width, stride, offset;
  std::vector<T> values;
};

template <typename T>
Rows<T> random_rows(std::size_t rows, std::size_t width, std::uint64_t seed, std::size_t gap = 0,
                    std::size_t offset = 0, int exponent = 0) {
  Random random(seed);
  Rows<T> result(rows, width, gap, offset);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      result.at(row, i) = element<T>(std::ldexp(0.3 + random.normal(), exponent));
    }
  }
  return result;
}

/// A few rows so wide that threads share each.
struct WideCase {
  NormKind kind;
  std::size_t rows, width, groups;
  double strange = 1.0;  ///< in the second to last row; 0: all of it is zero
};
inline constexpr WideCase wide_cases[] = {
    {NormKind::layer, 1, 262'168, 1},
    {NormKind::rms, 2, 200'001, 1},
    {NormKind::layer, 5, 160'000, 1},
    {NormKind::spherical, 1, std::size_t{1} << 20U, 1},
    {NormKind::rms, 3, 180'008, 1, std::numeric_limits<double>::quiet_NaN()},
    {NormKind::layer, 3, 180'008, 1, 0.0},
    {NormKind::rms, 2, 200'000, 2, std::numeric_limits<double>::infinity()},
    {NormKind::spherical, 3, 180'000, 8},
    {NormKind::layer, 5, 163'840, 16'384, 0.0},
};

template <typename T>
Rows<T> rows_of(const WideCase& wide, std::uint64_t seed, std::size_t gap = 0) {
  Rows<T> result = random_rows<T>(wide.rows, wide.width, seed, gap, gap);
  // Far from zero, for the other expression.
  if (wide.rows == 5) {
    for (std::size_t i = 0; i < wide.width; ++i) result.at(4, i) = element<T>(number(result.at(4, i)) + 8.0);
  }
  if (wide.strange == 0.0) result.set(wide.rows - 2, std::vector<double>(wide.width));
  if (!std::isfinite(wide.strange)) result.at(wide.rows - 2, wide.width / 3) = element<T>(wide.strange);
  return result;
}

/// The numbers without gaps.
template <typename T>
Rows<double> as_double(const Rows<T>& rows) {
  Rows<double> result(rows.rows, rows.width);
  for (std::size_t row = 0; row < rows.rows; ++row) {
    for (std::size_t i = 0; i < rows.width; ++i) result.at(row, i) = number(rows.at(row, i));
  }
  return result;
}

/// Hard rows, with names for messages.
struct HardRow {
  std::string name;
  std::vector<double> entries;
};

template <typename T>
std::vector<HardRow> hard_rows(std::size_t width) {
  Random random(width);
  const auto row = [&](const char* name, const auto& entry) {
    HardRow made{name, std::vector<double>(width)};
    for (std::size_t i = 0; i < width; ++i) made.entries[i] = entry(i);
    return made;
  };
  const double far = std::is_same_v<T, Float16> ? 1e3 : 1e6;
  const double big = largest<T>;
  return {
      row("ordinary", [&](std::size_t) { return random.normal(); }),
      row("far mean", [&](std::size_t) { return far + random.normal(); }),
      row("one huge entry", [&](std::size_t i) { return i == width / 2 ? big / 64 : random.normal(); }),
      row("first entry huge", [&](std::size_t i) { return i == 0 ? far : random.normal(); }),
      row("smallest numbers", [&](std::size_t) { return least<T> * std::round(4 * random.normal()); }),
      row("small", [&](std::size_t) { return 0x1p-60 * random.normal(); }),
      row("constant", [&](std::size_t) { return 1e3 / 3.0; }),
      row("constant and large", [&](std::size_t) { return big; }),
      row("zeros", [&](std::size_t) { return 0.0; }),
      row("alternating", [&](std::size_t i) { return i % 2 == 0 ? far : -far; }),
      row("alternating and large", [&](std::size_t i) { return i % 2 == 0 ? big : -big; }),
      row("two levels", [&](std::size_t i) { return (i < width / 3 ? far : 0.0) + random.normal(); }),
      row("rising", [&](std::size_t i) { return static_cast<double>(i) * 0.01 + 5.0; }),
      row("wide range",
          [&](std::size_t) { return std::ldexp(random.normal(), static_cast<int>(random.below(13))); }),
  };
}

/// A block in 106 bits before gain and bias, and what its deviations were divided by: scale · 2^exponent.
struct ExactBlock {
  std::vector<DoubleDouble> normalized;
  DoubleDouble scale;
  int exponent = 0;

  template <typename T>
  ExactBlock(const Layer<T>& layer, const T* x) : normalized(layer.width / layer.groups) {
    const auto n = static_cast<double>(normalized.size());
    double size = 0.0;
    for (std::size_t i = 0; i < normalized.size(); ++i) size = std::max(size, std::abs(number(x[i])));
    // Powers of two keep the squares in range and change no bit of the result.
    if (size > 0.0) exponent = std::ilogb(size);
    if (layer.eps > 0.0) exponent = std::max(exponent, -400);
    DoubleDouble mean;
    for (std::size_t i = 0; i < normalized.size(); ++i) {
      normalized[i] = std::scalbn(number(x[i]), -exponent);
      mean += normalized[i];
    }
    mean /= n;
    DoubleDouble square;
    for (DoubleDouble& value : normalized) {
      if (layer.centers()) value -= mean;
      square += value * value;
    }
    square /= normscope::test::entries_a_square(layer.kind, normalized.size());
    // A block without deviation, however large, is scaled by eps alone.
    if (square.high == 0.0) exponent = 0;
    scale = sqrt(square + DoubleDouble(std::scalbn(layer.eps, -2 * exponent)));
    for (DoubleDouble& value : normalized) value = scale.high == 0.0 ? DoubleDouble() : value / scale;
  }
};

/// The formulas at `NormKind`, of one row as stored.
template <typename T>
std::vector<double> exact(const Layer<T>& layer, const T* x) {
  std::vector<double> y(layer.width);
  const std::size_t n = layer.width / layer.groups;
  for (std::size_t begin = 0; begin < layer.width; begin += n) {
    const ExactBlock block(layer, x + begin);
    for (std::size_t i = 0; i < n; ++i) {
      const double bias = layer.bias.empty() ? 0.0 : static_cast<double>(layer.bias[begin + i]);
      y[begin + i] =
          to_double(block.normalized[i] * DoubleDouble(layer.gain_at(begin + i)) + DoubleDouble(bias));
    }
  }
  return y;
}

template <typename T>
bool same_bits(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a == b || (std::isnan(a) && std::isnan(b));
  } else {
    return a.bits == b.bits;
  }
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& one, const T& other) { return same_bits(one, other); });
}

}  // namespace normscope::norm::test
