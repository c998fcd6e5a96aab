#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "recipe.hpp"

namespace normscope::lab::test {

/// A recipe small enough to be trained in a test.
inline Recipe tiny_recipe() {
  Recipe recipe;
  recipe.seed = 7;
  recipe.width = 8;
  recipe.layers = 2;
  recipe.heads = 2;
  recipe.context = 12;
  recipe.layer_norm_epsilon = 1e-5;
  recipe.initial_deviation = 0.1;
  recipe.steps = 12;
  recipe.batch_rows = 4;
  recipe.warmup_steps = 3;
  recipe.peak_learning_rate = 0.01;
  recipe.final_learning_rate = 0.001;
  recipe.beta1 = 0.9;
  recipe.beta2 = 0.98;
  recipe.adam_epsilon = 1e-8;
  recipe.weight_decay = 0.1;
  recipe.gradient_clip = 1.0;
  recipe.measure_every = 5;
  recipe.measure_words = 10;
  return recipe;
}

inline constexpr const char* tiny_words =
    "apple\nbanana\ncherry\nDate\nelderberry\nfig\ngooseberry\ngrape\nhoneydew\nkiwi\n"
    "lemon\nmango\nnectarine\norange\npapaya\nquince\nraspberry\nsatsuma\ntangerine\n"
    "ugli\nvanilla\nwalnut\nwatermelon\nxigua\nyuzu\nzucchini\n"
    "apple's\nbanana's\ncaf\xc3\xa9\nfig\ngrape's\nwalnut's\n";

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace normscope::lab::test
