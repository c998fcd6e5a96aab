#include "adamw.hpp"

#include <cmath>

#include <normscope/nets/adam.hpp>

namespace normscope::lab {

double clip(std::span<float> gradient, double limit) {
  double squares = 0.0;
  for (const float value : gradient) squares += static_cast<double>(value) * value;
  const double norm = std::sqrt(squares);
  if (norm > limit) {
    const auto factor = static_cast<float>(limit / norm);
    for (float& value : gradient) value *= factor;
  }
  return norm;
}

void adamw_step(const Recipe& recipe, const std::vector<Parameter>& tensors, std::size_t step,
                std::span<const float> gradient, std::span<float> values, Moments& moments) {
  const auto time = static_cast<double>(step + 1);
  const auto beta1 = static_cast<float>(recipe.beta1);
  const auto beta2 = static_cast<float>(recipe.beta2);
  const auto correction1 = static_cast<float>(1.0 / (1.0 - std::pow(recipe.beta1, time)));
  const auto correction2 = static_cast<float>(1.0 / (1.0 - std::pow(recipe.beta2, time)));
  const auto epsilon = static_cast<float>(recipe.adam_epsilon);
  const auto rate = static_cast<float>(learning_rate(recipe, step));
  for (const Parameter& tensor : tensors) {
    const float decay = tensor.decays ? static_cast<float>(recipe.weight_decay) : 0.0F;
    for (std::size_t i = tensor.offset; i < tensor.offset + tensor.count; ++i) {
      float& first = moments.first[i];
      float& second = moments.second[i];
      nets::update_moments(gradient[i], beta1, beta2, first, second);
      const float direction = first * correction1 / (std::sqrt(second * correction2) + epsilon);
      values[i] -= rate * (direction + decay * values[i]);
    }
  }
}

}  // namespace normscope::lab
