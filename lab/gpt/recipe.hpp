#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace normscope::lab {

/// Everything that decides the trained weights, apart from the text.
struct Recipe {
  std::uint64_t seed = 0;

  std::size_t tokens = 0;           ///< of the vocabulary
  std::size_t reserved_tokens = 0;  ///< of them, those that no text gives
  std::size_t besides_weight = 0;   ///< how often the texts count that only the tokenizer is made of
  std::size_t width = 0;
  std::size_t layers = 0;
  std::size_t heads = 0;    ///< divides `width`
  std::size_t context = 0;  ///< tokens the model sees at once
  double layer_norm_epsilon = 0.0;
  double initial_deviation =
      0.0;  ///< of weights; those that write into the residual get 1/sqrt(2 layers) of it

  std::size_t steps = 0;
  std::size_t batch_rows = 0;
  std::size_t warmup_steps = 0;
  std::size_t cooldown_steps = 0;
  double peak_learning_rate = 0.0;
  double final_learning_rate = 0.0;
  double beta1 = 0.0;
  double beta2 = 0.0;
  double adam_epsilon = 0.0;
  double weight_decay = 0.0;
  double gradient_clip = 0.0;  ///< largest norm of the whole gradient

  std::size_t measure_every = 0;  ///< steps between two points of the training curve
  std::size_t measure_rows = 0;   ///< rows of either part of the text that such a point is measured on
};

/// Reads a recipe: one JSON object that holds every field of `Recipe` under its name, and no other.
///
/// Errors    Io; Format when it is no such object; Argument for a value outside its range
[[nodiscard]] Recipe read_recipe(const std::filesystem::path& path);

/// The recipe as JSON text that `read_recipe` takes; equal recipes give equal texts.
[[nodiscard]] std::string to_json(const Recipe& recipe);

/// Learning rate at `step` of 0 … steps − 1: linear up to the peak over the warm-up, and half a cosine down
/// to the final rate over the cool-down at the end. Until then, recipes that differ in their steps alone
/// agree.
[[nodiscard]] double learning_rate(const Recipe& recipe, std::size_t step);

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
/// (Conv1D), the head is out × in; the head is not tied to the embedding and begins at zero, so that all
/// tokens that the training never meets keep one row.
[[nodiscard]] std::vector<Parameter> parameters(const Recipe& recipe);

/// Number of values in all of `tensors`.
[[nodiscard]] std::size_t total_count(const std::vector<Parameter>& tensors);

/// Values to start a training from, drawn with that seed.
[[nodiscard]] std::vector<float> initial_values(const std::vector<Parameter>& tensors, std::uint64_t seed);
/// Draws the values of `parameters(recipe)` with the recipe's seed.
[[nodiscard]] std::vector<float> initial_values(const Recipe& recipe);

}  // namespace normscope::lab
