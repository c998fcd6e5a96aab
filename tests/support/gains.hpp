#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <normscope/core/random.hpp>

namespace normscope::test {

/// Gains of the shapes that occur in trained and adversarial norms.
inline std::vector<double> random_gain(std::size_t width, const std::string& shape, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> gain(width);
  for (double& g : gain) {
    if (shape == "ordinary") {
      g = 1.0 + 0.3 * random.normal();
    } else if (shape == "wide") {
      g = std::exp(3.0 * random.normal());
    } else if (shape == "signed") {
      g = random.normal();
    } else if (shape == "crowded") {
      g = 1.0 + 1e-13 * static_cast<double>(random.below(50)) + (random.below(8) == 0 ? 1.0 : 0.0);
    } else if (shape == "repeated") {
      g = (random.below(2) == 0 ? -1.0 : 1.0) * static_cast<double>(1 + random.below(4));
    } else if (shape == "zeros") {
      g = random.below(3) == 0 ? 0.0 : random.normal();
    } else if (shape == "outlier") {
      g = random.below(width) == 0 ? 1e20 : (random.below(width) == 0 ? 1e-20 : 1.0 + 0.1 * random.normal());
    }
  }
  return gain;
}

}  // namespace normscope::test
