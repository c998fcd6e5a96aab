#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/core/view.hpp>

namespace normscope::proof {

/// Rows with offsets, of sizes that differ by many powers of ten, some of them nearly equal or opposite.
struct MixedRows {
  std::vector<double> values{};
  std::vector<double> offsets{};
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), offsets.size(), width}; }
};

inline MixedRows mixed_rows(std::uint64_t seed) {
  Random random(seed);
  MixedRows result{.width = 1 + random.below(5)};
  const std::size_t rows = 1 + random.below(12);
  const std::uint64_t kind = random.below(8);
  const std::uint64_t bits = random.below(4);
  const double decades = kind < 4 ? std::vector<double>{28, 20, 12, 5}[kind] : 0.0;
  const auto power = [&](double most) { return std::pow(10.0, most * (2.0 * random.uniform() - 1.0)); };
  const auto number = [&] {
    double value = random.normal();
    if (bits == 0) value = std::round(value);
    if (bits == 1) value = std::round(value * 8.0) / 8.0;
    if (decades > 0.0) value *= power(decades);
    return random.below(6) == 0 ? 0.0 : value;
  };
  for (std::size_t row = 0; row < rows; ++row) {
    const double size = kind == 4 || kind == 5 ? power(20.0) : 1.0;
    const bool copies = row > 0 && random.below(4) == 0;
    const double part = std::pow(10.0, -20.0 * random.uniform());
    for (std::size_t i = 0; i < result.width; ++i) {
      double value = size * number();
      if (copies) {
        value =
            part * value + (random.below(5) == 0 ? -1.0 : 1.0) * result.values[(row - 1) * result.width + i];
      }
      result.values.push_back(value);
    }
    result.offsets.push_back(random.below(2) == 0 ? 0.0 : size * number());
  }
  return result;
}

}  // namespace normscope::proof
