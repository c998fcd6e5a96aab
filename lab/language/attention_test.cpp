#include "attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <normscope/core/random.hpp>

namespace normscope::lab::language {
namespace {

struct Input {
  Attention shape;
  std::vector<float> parts{};
  std::vector<float> by_out{};

  [[nodiscard]] float at(std::size_t part, std::size_t head, std::size_t f, std::size_t i) const {
    return parts[((part * shape.heads + head) * shape.width + f) * shape.length + i];
  }
};

Input some(Attention shape, std::uint64_t seed) {
  Input input{.shape = shape};
  Random random(seed);
  input.parts.resize(3 * shape.heads * shape.width * shape.length);
  input.by_out.resize(shape.heads * shape.width * shape.length);
  for (float& entry : input.parts) entry = static_cast<float>(1.5 * random.normal());
  for (float& entry : input.by_out) entry = static_cast<float>(random.normal());
  return input;
}

/// Sum of `by_out` times the output, in double, weight by weight as attention is written down; and the
/// output.
double by_every_weight(const Input& input, std::vector<double>& out) {
  const Attention& shape = input.shape;
  out.assign(input.by_out.size(), 0.0);
  double sum = 0.0;
  for (std::size_t head = 0; head < shape.heads; ++head) {
    for (std::size_t i = 0; i < shape.length; ++i) {
      std::vector<double> weight(i + 1, 0.0);
      double total = 0.0;
      for (std::size_t j = 0; j <= i; ++j) {
        double score = 0.0;
        for (std::size_t f = 0; f < shape.width; ++f) {
          score += static_cast<double>(input.at(0, head, f, i)) * input.at(1, head, f, j);
        }
        weight[j] = std::exp(score / std::sqrt(static_cast<double>(shape.width)));
        total += weight[j];
      }
      for (std::size_t f = 0; f < shape.width; ++f) {
        const std::size_t index = (head * shape.width + f) * shape.length + i;
        for (std::size_t j = 0; j <= i; ++j) {
          out[index] +=
              static_cast<double>(kept(shape, head, i, j)) * weight[j] / total * input.at(2, head, f, j);
        }
        sum += out[index] * input.by_out[index];
      }
    }
  }
  return sum;
}

const std::vector<Attention> shapes{{.heads = 3, .width = 2, .length = 37, .dropout = 0.0},
                                    {.heads = 2, .width = 1, .length = 16, .dropout = 0.3, .noise = 7},
                                    {.heads = 2, .width = 4, .length = 5, .dropout = 0.1, .noise = 8},
                                    {.heads = 1, .width = 8, .length = 65, .dropout = 0.1, .noise = 9}};

TEST(NarrowAttention, IsThatOfEveryWeight) {
  for (const Attention& shape : shapes) {
    const Input input = some(shape, 1);
    std::vector<double> expected;
    by_every_weight(input, expected);
    std::vector<float> out(expected.size());
    std::vector<float> softmax(2 * shape.heads * shape.length);
    attend(shape, input.parts, out, softmax);
    double largest = 0.0;
    for (const double entry : expected) largest = std::max(largest, std::abs(entry));
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 1e-5 * largest) << i;
  }
}

TEST(NarrowAttention, GradientIsThatOfDifferences) {
  for (const Attention& shape : shapes) {
    Input input = some(shape, 2);
    std::vector<float> out(input.by_out.size());
    std::vector<float> softmax(2 * shape.heads * shape.length);
    std::vector<float> gradient(input.parts.size());
    attend(shape, input.parts, out, softmax);
    attend_back(shape, input.parts, out, softmax, input.by_out, gradient);
    double largest = 0.0;
    for (const float entry : gradient) largest = std::max(largest, std::abs(static_cast<double>(entry)));
    std::vector<double> ignored;
    for (std::size_t i = 0; i < gradient.size(); i += 3) {
      // A step that float32 holds exactly.
      const float kept_entry = input.parts[i];
      const float above = kept_entry + 0x1p-10F;
      const float below = kept_entry - 0x1p-10F;
      input.parts[i] = above;
      double difference = by_every_weight(input, ignored);
      input.parts[i] = below;
      difference -= by_every_weight(input, ignored);
      input.parts[i] = kept_entry;
      ASSERT_NEAR(gradient[i], difference / (static_cast<double>(above) - below), 2e-5 * largest) << i;
    }
  }
}

TEST(NarrowAttention, DropsThatManyWeights) {
  const Attention shape{.heads = 4, .width = 2, .length = 200, .dropout = 0.1, .noise = 3};
  double dropped = 0.0;
  double same = 0.0;
  double count = 0.0;
  Attention other = shape;
  other.noise = 4;
  for (std::size_t head = 0; head < shape.heads; ++head) {
    for (std::size_t i = 0; i < shape.length; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        const bool first = kept(shape, head, i, j) == 0.0F;
        count += 1.0;
        dropped += first ? 1.0 : 0.0;
        same += first && kept(other, head, i, j) == 0.0F ? 1.0 : 0.0;
      }
    }
  }
  EXPECT_NEAR(dropped / count, 0.1, 0.004);
  EXPECT_NEAR(same / count, 0.01, 0.002);
}

}  // namespace
}  // namespace normscope::lab::language
