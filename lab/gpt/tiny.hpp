#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <normscope/core/random.hpp>

#include "recipe.hpp"

namespace normscope::lab::test {

/// A recipe small enough to be trained in a test.
inline Recipe tiny_recipe() {
  Recipe recipe;
  recipe.seed = 7;
  recipe.tokens = 280;
  recipe.reserved_tokens = 2;
  recipe.besides_weight = 3;
  recipe.width = 8;
  recipe.layers = 2;
  recipe.heads = 2;
  recipe.context = 12;
  recipe.layer_norm_epsilon = 1e-5;
  recipe.initial_deviation = 0.1;
  recipe.steps = 12;
  recipe.batch_rows = 4;
  recipe.warmup_steps = 3;
  recipe.cooldown_steps = 9;
  recipe.peak_learning_rate = 0.01;
  recipe.final_learning_rate = 0.001;
  recipe.beta1 = 0.9;
  recipe.beta2 = 0.98;
  recipe.adam_epsilon = 1e-8;
  recipe.weight_decay = 0.1;
  recipe.gradient_clip = 1.0;
  recipe.measure_every = 5;
  recipe.measure_rows = 10;
  return recipe;
}

/// 800 lines, of which one block of 64 is held out.
inline std::string tiny_text() {
  const std::vector<std::string> words = {"the", "bee",   "sees",  "a",    "tree",
                                          "and", "there", "three", "seeds"};
  Random random(5);
  std::string text;
  for (std::size_t line = 0; line < 800; ++line) {
    for (std::size_t i = 0; i < 4; ++i) text += (i == 0 ? "" : " ") + words[random.below(words.size())];
    text += ".\n";
  }
  return text;
}

/// What the tokenizer is made of besides.
inline constexpr const char* tiny_licence = "LICENCE LICENCE LICENCE LICENCE\n";

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace normscope::lab::test
