#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/core/view.hpp>

namespace normscope::proof {

struct Points {
  std::vector<double> values{};
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const {
    return {values.data(), values.size() / width, width};
  }
};

/// Rows of a normal distribution, the first coordinate moved by `shift`.
inline Points normal_points(std::size_t rows, std::size_t width, std::uint64_t seed, double shift = 0.0) {
  Random random(seed);
  Points points{.width = width};
  for (std::size_t i = 0; i < rows * width; ++i) {
    points.values.push_back(random.normal() + (i % width == 0 ? shift : 0.0));
  }
  return points;
}

/// Two sets for which rounding matters, of a kind chosen by `seed`.
struct IllConditionedPair {
  Points a{};
  Points b{};
};

inline IllConditionedPair ill_conditioned_pair(std::uint64_t seed) {
  Random random(seed);
  const std::size_t width = 1 + random.below(6);
  const double shifts[] = {0.0, 0.5, 1.0, 2.0, 3.0};
  IllConditionedPair sets{
      normal_points(1 + random.below(2 * width + 2), width, seed + 1, shifts[random.below(5)]),
      normal_points(1 + random.below(2 * width + 2), width, seed + 2)};
  const auto each = [&](const auto& change) {
    for (Points* points : {&sets.a, &sets.b}) {
      for (std::size_t i = 0; i < points->values.size(); ++i) change(points->values[i], i % width);
    }
  };
  const std::size_t kind = random.below(9);
  if (kind == 0) {
    each([](double& value, std::size_t) { value = std::round(1.5 * value); });
  } else if (kind == 1) {
    std::vector<double> sizes(width);
    for (double& size : sizes) size = std::pow(10.0, 24.0 * random.uniform() - 12.0);
    each([&](double& value, std::size_t column) { value *= sizes[column]; });
  } else if (kind == 2) {
    // Two parallel planes near each other, rotated into all coordinates.
    const double half = std::pow(10.0, -5.0 - 11.0 * random.uniform());
    for (Points* points : {&sets.a, &sets.b}) {
      for (std::size_t i = 0; i < points->values.size(); i += width) {
        points->values[i] = points == &sets.a ? half : -half;
        for (std::size_t j = 1; j < width; ++j) {
          const double x = points->values[i];
          const double y = points->values[i + j];
          points->values[i] = 0.6 * x - 0.8 * y;
          points->values[i + j] = 0.8 * x + 0.6 * y;
        }
      }
    }
  } else if (kind == 3) {
    const double distance = std::pow(10.0, 12.0 * random.uniform());
    each([&](double& value, std::size_t column) { value += distance / static_cast<double>(column + 1); });
  } else if (kind == 4) {
    // The sets have one row in common.
    each([](double& value, std::size_t column) { value = column == 0 ? std::abs(value) : value; });
    for (std::size_t i = 0; i < sets.b.values.size(); i += width) sets.b.values[i] *= -1.0;
    for (std::size_t j = 0; j < width; ++j) sets.a.values[j] = sets.b.values[j];
  } else if (kind == 5) {
    // A row of one set near the middle of the other's first and last, and the rest on either side of it.
    for (std::size_t j = 0; j < width; ++j) {
      sets.a.values[j] = 0.3 * sets.b.values[j] + 0.7 * sets.b.values[sets.b.values.size() - width + j];
    }
    for (std::size_t i = width; i < sets.a.values.size(); i += width) {
      sets.a.values[i] = sets.a.values[0] + std::abs(sets.a.values[i]);
    }
    for (std::size_t i = 0; i < sets.b.values.size(); i += width) {
      sets.b.values[i] = sets.a.values[0] - std::abs(sets.b.values[i]) * static_cast<double>(random.below(2));
    }
  } else if (kind == 6) {
    each([](double& value, std::size_t) { value = std::scalbn(value, -190); });
  } else if (kind == 7) {
    each([](double& value, std::size_t) { value = std::scalbn(value, 95); });
  }
  return sets;
}

}  // namespace normscope::proof
