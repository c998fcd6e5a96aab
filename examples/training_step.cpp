// The operations of a transformer block around its norm, in bfloat16: the block's output is added to the
// stream and the sum is normalized; the backward pass computes the gradients of the stream, the gain and the
// bias.
#include <cstdio>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/norm/kernels.hpp>

namespace norm = normscope::norm;
using norm::Bfloat16;

constexpr std::size_t rows = 128;
constexpr std::size_t width = 256;

std::vector<Bfloat16> random_rows(normscope::Random& random) {
  std::vector<Bfloat16> values(rows * width);
  for (Bfloat16& value : values) value = norm::to_bfloat16(static_cast<float>(random.normal()));
  return values;
}

int main() {
  normscope::Random random(1);
  std::vector<Bfloat16> stream = random_rows(random);
  std::vector<Bfloat16> block_output = random_rows(random);
  const std::vector<Bfloat16> target = random_rows(random);
  std::vector<Bfloat16> sum(rows * width), y(rows * width), dy(rows * width), dx(rows * width);
  // Parameters, statistics and the parameters' gradients are float32.
  std::vector<float> gain(width, 1.0F), bias(width, 0.0F), dgain(width), dbias(width);
  const auto view = [](std::vector<Bfloat16>& of) {
    return normscope::MatrixView<Bfloat16>(of.data(), rows, width);
  };

  double first_loss = 0.0;
  double loss = 0.0;
  for (int step = 0; step < 20; ++step) {
    const norm::Layer<Bfloat16> layer{.width = width, .eps = 1e-5, .gain = gain, .bias = bias};
    norm::add_normalize<Bfloat16>(layer, view(block_output), view(stream), view(sum), view(y));

    // The loss is half the mean square of y − target, and dy its gradient times the number of rows.
    loss = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float off = norm::to_float(y[i]) - norm::to_float(target[i]);
      loss += 0.5 * static_cast<double>(off * off) / static_cast<double>(y.size());
      dy[i] = norm::to_bfloat16(off);
    }
    if (step == 0) first_loss = loss;

    // dx is the gradient of the sum, and therefore of both the stream and the block's output.
    norm::normalize_backward<Bfloat16>(layer, view(sum), view(dy), view(dx), {.gain = dgain, .bias = dbias});
    const float rate = 0.5F / rows;
    for (std::size_t i = 0; i < width; ++i) {
      gain[i] -= rate * dgain[i];
      bias[i] -= rate * dbias[i];
    }
  }

  // Targets are random, so the best fit is a gain near 0, which halves the loss.
  std::printf("loss %.4f, after 20 steps %.4f\n", first_loss, loss);
  return first_loss > 0.95 && loss < 0.51 ? 0 : 1;
}
