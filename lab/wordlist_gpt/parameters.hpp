#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "recipe.hpp"

namespace normscope::lab {

/// One tensor of the model, as a piece of the flat vector that holds all parameters.
struct Parameter {
  std::string name;  ///< as in Hugging Face's GPT2LMHeadModel
  std::vector<std::uint64_t> shape;
  std::size_t offset = 0;
  std::size_t count = 0;
  double initial_mean = 0.0;
  double initial_deviation = 0.0;
  bool decays =
      false;  ///< whether weight decay pulls at it: matrices do, gains, biases and embeddings do not
};

/// The tensors in the order the forward pass meets them. Matrices of the blocks are in × out
/// (Conv1D), the head is out × in; the head is not tied to the embedding.
[[nodiscard]] std::vector<Parameter> parameters(const Recipe& recipe);

/// Number of values in all of `tensors`.
[[nodiscard]] std::size_t total_count(const std::vector<Parameter>& tensors);

/// Values to start a training from, drawn with that seed.
[[nodiscard]] std::vector<float> initial_values(const std::vector<Parameter>& tensors, std::uint64_t seed);
/// The same for `parameters(recipe)` and the recipe's seed.
[[nodiscard]] std::vector<float> initial_values(const Recipe& recipe);

}  // namespace normscope::lab
