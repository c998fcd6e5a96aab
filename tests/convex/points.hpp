#pragma once

#include <cstdint>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/core/view.hpp>

namespace normscope::convex {

struct Points {
  std::vector<double> values{};
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const {
    return {values.data(), values.size() / width, width};
  }
};

/// Rows of a normal distribution, the first coordinate moved by `shift`.
inline Points cloud(std::size_t rows, std::size_t width, std::uint64_t seed, double shift = 0.0) {
  Random random(seed);
  Points points{.width = width};
  for (std::size_t i = 0; i < rows * width; ++i) {
    points.values.push_back(random.normal() + (i % width == 0 ? shift : 0.0));
  }
  return points;
}

}  // namespace normscope::convex
