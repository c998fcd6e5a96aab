#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace normscope::lab {

/// Everything that decides the trained weights, apart from the words.
struct Recipe {
  std::uint64_t seed = 0;

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
  double peak_learning_rate = 0.0;
  double final_learning_rate = 0.0;
  double beta1 = 0.0;
  double beta2 = 0.0;
  double adam_epsilon = 0.0;
  double weight_decay = 0.0;
  double gradient_clip = 0.0;  ///< largest norm of the whole gradient

  std::size_t measure_every = 0;  ///< steps between two points of the training curve
  std::size_t measure_words = 0;  ///< words of either list that such a point is measured on
};

/// Reads a recipe: one JSON object that holds every field of `Recipe` under its name, and no other.
///
/// Errors    Io; Format when it is no such object; Argument for a value outside its range
[[nodiscard]] Recipe read_recipe(const std::filesystem::path& path);

/// The recipe as JSON text that `read_recipe` takes; equal recipes give equal texts.
[[nodiscard]] std::string to_json(const Recipe& recipe);

/// Learning rate at `step` of 0 … steps − 1: linear up to the peak over the warm-up, then half a
/// cosine down to the final rate.
[[nodiscard]] double learning_rate(const Recipe& recipe, std::size_t step);

}  // namespace normscope::lab
