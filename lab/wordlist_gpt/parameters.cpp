#include "parameters.hpp"

#include <cmath>
#include <utility>

#include <normscope/core/random.hpp>

#include "words.hpp"

namespace normscope::lab {
namespace {

class Layout {
 public:
  explicit Layout(const Recipe& recipe) : deviation_(recipe.initial_deviation) {}

  void embedding(const std::string& name, std::uint64_t rows, std::uint64_t width) {
    add({name + ".weight", {rows, width}, 0, 0, 0.0, deviation_, false});
  }
  void norm(const std::string& name, std::uint64_t width) {
    add({name + ".weight", {width}, 0, 0, 1.0, 0.0, false});
    add({name + ".bias", {width}, 0, 0, 0.0, 0.0, false});
  }
  void linear(const std::string& name, std::uint64_t in, std::uint64_t out, double scale = 1.0) {
    add({name + ".weight", {in, out}, 0, 0, 0.0, scale * deviation_, true});
    add({name + ".bias", {out}, 0, 0, 0.0, 0.0, false});
  }
  void head(const std::string& name, std::uint64_t in, std::uint64_t out) {
    add({name + ".weight", {out, in}, 0, 0, 0.0, deviation_, true});
  }

  std::vector<Parameter> tensors;

 private:
  void add(Parameter tensor) {
    tensor.offset = total_count(tensors);
    tensor.count = 1;
    for (const std::uint64_t extent : tensor.shape) tensor.count *= extent;
    tensors.push_back(std::move(tensor));
  }

  double deviation_;
};

}  // namespace

std::vector<Parameter> parameters(const Recipe& recipe) {
  const std::uint64_t width = recipe.width;
  // Each block adds to the residual twice; shrunk by this, the sum keeps the deviation of one term.
  const double residual = 1.0 / std::sqrt(2.0 * static_cast<double>(recipe.layers));
  Layout layout(recipe);
  layout.embedding("transformer.wte", alphabet.size(), width);
  layout.embedding("transformer.wpe", recipe.context, width);
  for (std::size_t layer = 0; layer < recipe.layers; ++layer) {
    const std::string block = "transformer.h." + std::to_string(layer);
    layout.norm(block + ".ln_1", width);
    layout.linear(block + ".attn.c_attn", width, 3 * width);
    layout.linear(block + ".attn.c_proj", width, width, residual);
    layout.norm(block + ".ln_2", width);
    layout.linear(block + ".mlp.c_fc", width, 4 * width);
    layout.linear(block + ".mlp.c_proj", 4 * width, width, residual);
  }
  layout.norm("transformer.ln_f", width);
  layout.head("lm_head", width, alphabet.size());
  return std::move(layout.tensors);
}

std::size_t total_count(const std::vector<Parameter>& tensors) {
  return tensors.empty() ? 0 : tensors.back().offset + tensors.back().count;
}

std::vector<float> initial_values(const std::vector<Parameter>& tensors, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values;
  for (const Parameter& tensor : tensors) {
    for (std::size_t i = 0; i < tensor.count; ++i) {
      const double noise = tensor.initial_deviation > 0.0 ? tensor.initial_deviation * random.normal() : 0.0;
      values.push_back(static_cast<float>(tensor.initial_mean + noise));
    }
  }
  return values;
}

std::vector<float> initial_values(const Recipe& recipe) {
  return initial_values(parameters(recipe), recipe.seed);
}

}  // namespace normscope::lab
