#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "builder.hpp"

namespace normscope::models {

namespace {

struct NamedActivation {
  std::string_view name;
  Activation activation;
};

// Hugging Face's names. "gelu_new" and "gelu_pytorch_tanh" are the same function.
constexpr NamedActivation kActivations[] = {
    {"gelu", Activation::gelu},          {"gelu_python", Activation::gelu},
    {"gelu_new", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"silu", Activation::silu},          {"swish", Activation::silu},
    {"relu", Activation::relu},          {"relu2", Activation::squared_relu},
};

}  // namespace

void Builder::decoder(const DecoderStyle& style) {
  Decoder decoder{.embedding_scale = style.embedding_scale,
                  .branch_scale = style.branch_scale,
                  .first_position = style.first_position};
  const bool is_sure = style.fixed_activation || !config_.model_types().empty();
  std::string name(is_sure ? style.activation : std::string_view());
  std::string field = "activation";
  for (const char* key : {"hidden_activation", "hidden_act", "activation_function", "activation"}) {
    if (const std::optional<std::string> stated = config_.text({key})) {
      name = *stated;
      field = key;
      break;
    }
  }
  const auto* const known = std::find_if(std::begin(kActivations), std::end(kActivations),
                                         [&](const NamedActivation& one) { return one.name == name; });
  if (known != std::end(kActivations)) {
    decoder.activation = known->activation;
  } else if (!name.empty()) {
    decoder.not_modelled = fmt::format("{}: {}", field, name);
  }
  model_.decoder = std::move(decoder);
  embedding_times_root_ = style.embedding_times_root;
}

const Norm* find_norm(const Model& model, const std::string& name) {
  const auto at = std::find_if(model.norms.begin(), model.norms.end(),
                               [&](const Norm& norm) { return norm.name == name; });
  return name.empty() || at == model.norms.end() ? nullptr : &*at;
}

const Norm* own_norm(const Model& model, const Linear& part) {
  const auto at = std::find_if(model.norms.begin(), model.norms.end(), [&](const Norm& norm) {
    return norm.placement == Placement::inside &&
           std::any_of(norm.writers.begin(), norm.writers.end(),
                       [&](const Linear& map) { return map.covers(part); });
  });
  return at == model.norms.end() ? nullptr : &*at;
}

void rotate(const Rotary& rotary, std::size_t position, std::span<double> part) {
  const std::size_t half = rotary.dims / 2;
  for (std::size_t pair = 0; pair < half; ++pair) {
    const double angle = static_cast<double>(position) * rotary.frequencies[pair];
    double& first = part[rotary.interleaved ? 2 * pair : pair];
    double& second = part[rotary.interleaved ? 2 * pair + 1 : pair + half];
    const double turned = first * std::cos(angle) - second * std::sin(angle);
    second = first * std::sin(angle) + second * std::cos(angle);
    first = turned;
  }
}

}  // namespace normscope::models
