#include "recipe.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/random.hpp>

namespace normscope::lab {
namespace {

using Json = nlohmann::ordered_json;

/// Calls `field(name, value, least, most)` for every field; reading and writing share this list.
template <typename AnyRecipe, typename Field>
void for_each_field(AnyRecipe& recipe, const Field& field) {
  field("seed", recipe.seed, 0, 1e15);
  field("tokens", recipe.tokens, 256, 65536);
  field("reserved_tokens", recipe.reserved_tokens, 0, 65536);
  field("besides_weight", recipe.besides_weight, 1, 1e6);
  field("width", recipe.width, 1, 4096);
  field("layers", recipe.layers, 1, 100);
  field("heads", recipe.heads, 1, 100);
  field("context", recipe.context, 2, 1024);
  field("layer_norm_epsilon", recipe.layer_norm_epsilon, 0, 1);
  field("initial_deviation", recipe.initial_deviation, 0, 10);
  field("steps", recipe.steps, 1, 1e7);
  field("batch_rows", recipe.batch_rows, 1, 1e5);
  field("warmup_steps", recipe.warmup_steps, 0, 1e7);
  field("cooldown_steps", recipe.cooldown_steps, 0, 1e7);
  field("peak_learning_rate", recipe.peak_learning_rate, 0, 10);
  field("final_learning_rate", recipe.final_learning_rate, 0, 10);
  field("beta1", recipe.beta1, 0, 0.999999);
  field("beta2", recipe.beta2, 0, 0.999999);
  field("adam_epsilon", recipe.adam_epsilon, 1e-15, 1);
  field("weight_decay", recipe.weight_decay, 0, 10);
  field("gradient_clip", recipe.gradient_clip, 1e-9, 1e9);
  field("measure_every", recipe.measure_every, 1, 1e7);
  field("measure_rows", recipe.measure_rows, 1, 1e7);
}

Json parse(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  try {
    return Json::parse(text, text + file.bytes().size());
  } catch (const Json::parse_error& error) {
    throw Error(ErrorCode::Format, fmt::format("recipe: {}: no JSON at byte {}, expected one object",
                                               path.string(), error.byte));
  }
}

}  // namespace

Recipe read_recipe(const std::filesystem::path& path) {
  const Json json = parse(path);
  if (!json.is_object()) {
    throw Error(ErrorCode::Format,
                fmt::format("recipe: {}: a JSON {}, expected one object", path.string(), json.type_name()));
  }
  Recipe recipe;
  Json unknown = json;
  for_each_field(recipe, [&](const char* name, auto& value, double least, double most) {
    using Value = std::remove_reference_t<decltype(value)>;
    constexpr bool whole = std::is_integral_v<Value>;
    const auto found = json.find(name);
    if (found == json.end()) {
      throw Error(ErrorCode::Format, fmt::format("recipe: {}: no \"{}\"", path.string(), name));
    }
    const bool right_type = whole ? found->is_number_integer() : found->is_number();
    const double number =
        right_type ? found->template get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (!(number >= least && number <= most)) {
      throw Error(ErrorCode::Argument,
                  fmt::format("recipe: {}: \"{}\" is {}, expected a {} from {} to {}", path.string(), name,
                              found->dump(), whole ? "whole number" : "number", least, most));
    }
    value = found->template get<Value>();
    unknown.erase(name);
  });
  if (!unknown.empty()) {
    throw Error(ErrorCode::Format, fmt::format("recipe: {}: \"{}\" is no field of a recipe", path.string(),
                                               unknown.begin().key()));
  }
  if (recipe.width % recipe.heads != 0) {
    throw Error(ErrorCode::Argument,
                fmt::format("recipe: {}: \"heads\" is {}, expected a divisor of the width {}", path.string(),
                            recipe.heads, recipe.width));
  }
  return recipe;
}

std::string to_json(const Recipe& recipe) {
  Json json = Json::object();
  for_each_field(recipe, [&](const char* name, const auto& value, double, double) { json[name] = value; });
  return json.dump(2) + "\n";
}

double learning_rate(const Recipe& recipe, std::size_t step) {
  if (step < recipe.warmup_steps) {
    return recipe.peak_learning_rate * static_cast<double>(step + 1) /
           static_cast<double>(recipe.warmup_steps);
  }
  if (step + recipe.cooldown_steps < recipe.steps) return recipe.peak_learning_rate;
  const double done = static_cast<double>(step + recipe.cooldown_steps - recipe.steps) /
                      static_cast<double>(recipe.cooldown_steps);
  const double share = 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return recipe.final_learning_rate + share * (recipe.peak_learning_rate - recipe.final_learning_rate);
}

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
    add({name + ".weight", {out, in}, 0, 0, 0.0, 0.0, true});
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
  layout.embedding("transformer.wte", recipe.tokens, width);
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
  layout.head("lm_head", width, recipe.tokens);
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
