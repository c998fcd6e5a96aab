#include <algorithm>
#include <cmath>

#include "problem.hpp"

// The compiler only vectorizes sums if it may reorder them.
#define NORMSCOPE_LOOP                                          \
  __attribute__((optimize("O3", "fast-math", "no-math-errno"))) \
  __attribute__((target_clones("arch=skylake-avx512", "avx2,fma", "default")))

namespace normscope::bench {
namespace {

NORMSCOPE_LOOP void forward(std::size_t rows, std::size_t width, float eps, const float* x, const float* gain,
                            const float* bias, float* y) {
  for (std::size_t row = 0; row < rows; ++row, x += width, y += width) {
    float sum = 0.0F;
    for (std::size_t i = 0; i < width; ++i) sum += x[i];
    const float mean = sum / static_cast<float>(width);
    float square = 0.0F;
    for (std::size_t i = 0; i < width; ++i) square += (x[i] - mean) * (x[i] - mean);
    const float scale = 1.0F / std::sqrt(square / static_cast<float>(width) + eps);
    for (std::size_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * scale * gain[i] + bias[i];
  }
}

NORMSCOPE_LOOP void backward(std::size_t rows, std::size_t width, float eps, const float* x, const float* dy,
                             const float* gain, float* dx, float* of_gain, float* of_bias) {
  std::fill_n(of_gain, width, 0.0F);
  std::fill_n(of_bias, width, 0.0F);
  const float count = static_cast<float>(width);
  for (std::size_t row = 0; row < rows; ++row, x += width, dy += width, dx += width) {
    float sum = 0.0F;
    for (std::size_t i = 0; i < width; ++i) sum += x[i];
    const float mean = sum / count;
    float square = 0.0F;
    float total = 0.0F;
    float along = 0.0F;
    for (std::size_t i = 0; i < width; ++i) {
      square += (x[i] - mean) * (x[i] - mean);
      total += dy[i] * gain[i];
      along += dy[i] * gain[i] * (x[i] - mean);
    }
    const float scale = 1.0F / std::sqrt(square / count + eps);
    total /= count;
    along *= scale / count;
    for (std::size_t i = 0; i < width; ++i) {
      const float normalized = (x[i] - mean) * scale;
      of_gain[i] += dy[i] * normalized;
      of_bias[i] += dy[i];
      dx[i] = (dy[i] * gain[i] - total - normalized * along) * scale;
    }
  }
}

}  // namespace

Peer loop(const Shared& problem, Task task) {
  const bool either = task == Task::forward || task == Task::backward;
  if (!either || problem->dtype != Dtype::F32 || problem->threads != 1) return std::nullopt;
  const auto x = static_cast<const float*>(problem->x);
  const auto dy = static_cast<const float*>(problem->dy);
  const auto result = aligned(problem->bytes());
  const auto gradients = std::make_shared<std::vector<float>>(2 * problem->width);
  const auto call = [=] {
    float* const to = static_cast<float*>(result.get());
    const auto eps = static_cast<float>(problem->eps);
    if (task == Task::forward) {
      forward(problem->rows, problem->width, eps, x, problem->gain.data(), problem->bias.data(), to);
    } else {
      backward(problem->rows, problem->width, eps, x, dy, problem->gain.data(), to, gradients->data(),
               gradients->data() + problem->width);
    }
  };
  const auto results = [=] {
    return results_of(task, {result.get(), problem->size()}, {gradients->data(), gradients->size()});
  };
  return Solver{"plain loop", call, results};
}

}  // namespace normscope::bench
