#include "recipe.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

namespace normscope::lab {
namespace {

using Json = nlohmann::ordered_json;

/// Calls `field(name, value, least, most)` for every field; reading and writing share this list.
template <typename AnyRecipe, typename Field>
void for_each_field(AnyRecipe& recipe, const Field& field) {
  field("seed", recipe.seed, 0, 1e15);
  field("width", recipe.width, 1, 4096);
  field("layers", recipe.layers, 1, 100);
  field("heads", recipe.heads, 1, 100);
  field("context", recipe.context, 2, 1024);
  field("layer_norm_epsilon", recipe.layer_norm_epsilon, 0, 1);
  field("initial_deviation", recipe.initial_deviation, 0, 10);
  field("steps", recipe.steps, 1, 1e7);
  field("batch_rows", recipe.batch_rows, 1, 1e5);
  field("warmup_steps", recipe.warmup_steps, 0, 1e7);
  field("peak_learning_rate", recipe.peak_learning_rate, 0, 10);
  field("final_learning_rate", recipe.final_learning_rate, 0, 10);
  field("beta1", recipe.beta1, 0, 0.999999);
  field("beta2", recipe.beta2, 0, 0.999999);
  field("adam_epsilon", recipe.adam_epsilon, 1e-15, 1);
  field("weight_decay", recipe.weight_decay, 0, 10);
  field("gradient_clip", recipe.gradient_clip, 1e-9, 1e9);
  field("measure_every", recipe.measure_every, 1, 1e7);
  field("measure_words", recipe.measure_words, 1, 1e7);
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
  const double done = static_cast<double>(step - recipe.warmup_steps) /
                      static_cast<double>(recipe.steps - recipe.warmup_steps);
  const double share = 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return recipe.final_learning_rate + share * (recipe.peak_learning_rate - recipe.final_learning_rate);
}

}  // namespace normscope::lab
