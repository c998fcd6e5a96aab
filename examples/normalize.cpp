// A batch of rows through LayerNorm, then the same batch in eight groups and in place.
#include <cmath>
#include <cstdio>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/norm/kernels.hpp>

namespace norm = normscope::norm;

/// The largest difference of a block's mean from 0 and of its mean square from 1.
float worst_moment(const std::vector<float>& y, std::size_t block) {
  float worst = 0.0F;
  for (std::size_t begin = 0; begin < y.size(); begin += block) {
    float mean = 0.0F;
    float square = 0.0F;
    for (std::size_t i = begin; i < begin + block; ++i) {
      mean += y[i] / static_cast<float>(block);
      square += y[i] * y[i] / static_cast<float>(block);
    }
    worst = std::fmax(worst, std::fmax(std::abs(mean), std::abs(square - 1.0F)));
  }
  return worst;
}

int main() {
  const std::size_t rows = 64;
  const std::size_t width = 768;
  normscope::Random random(1);
  std::vector<float> x(rows * width);
  for (float& value : x) value = static_cast<float>(10.0 + 3.0 * random.normal());
  std::vector<float> y(x.size());

  // A layer without gain and bias; with them: {.width = width, .gain = gain, .bias = bias}.
  const norm::Layer<float> layer{.width = width, .eps = 1e-5};
  norm::normalize<float>(layer, {x.data(), rows, width}, {y.data(), rows, width});
  const float plain = worst_moment(y, width);

  const norm::Layer<float> grouped{.width = width, .groups = 8, .eps = 1e-5};
  norm::normalize<float>(grouped, {x.data(), rows, width}, {x.data(), rows, width});
  const float in_groups = worst_moment(x, width / 8);

  std::printf("mean 0 and mean square 1 to %.0e; in each of 8 groups to %.0e\n", static_cast<double>(plain),
              static_cast<double>(in_groups));
  return plain < 1e-5F && in_groups < 1e-5F ? 0 : 1;
}
