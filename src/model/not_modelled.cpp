#include "not_modelled.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "builder.hpp"

namespace normscope::model {

namespace {

/// The common prefix of the names of one attention's tensors: "h.0.attn." of "h.0.attn.c_attn.weight"; empty
/// if the projection has no siblings.
std::string_view attention_of(std::string_view projection) {
  if (projection.ends_with(".weight")) projection.remove_suffix(7);
  const std::size_t dot = projection.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : projection.substr(0, dot + 1);
}

}  // namespace

void add_not_modelled(std::string& list, std::string_view what) {
  if (what.empty() || list.find(what) != std::string::npos) return;
  if (!list.empty()) list += "; ";
  list += what;
}

void add_not_modelled(Model& model, Effect effect, std::string_view what) {
  if (effect == Effect::scores || effect == Effect::everything) {
    for (Head& head : model.heads) add_not_modelled(head.not_modelled, what);
  }
  if (model.vocabulary && (effect == Effect::logits || effect == Effect::everything)) {
    add_not_modelled(model.vocabulary->not_modelled, what);
  }
}

// Tensors beside the projections that were not described can affect the scores: learned sinks, relative
// positions, scales of quantized weights, adapters.
void Builder::flag_attention_leftovers() {
  for (Head& head : model_.heads) {
    if (!head.query) continue;
    const std::string_view attention = attention_of(head.query->weight.tensor);
    if (attention.empty()) continue;
    for (const checkpoint::Tensor& tensor : inventory_.starting_with(attention)) {
      if (!used(tensor)) {
        add_not_modelled(head.not_modelled, fmt::format("tensor \"{}\"", tensor.name));
        break;
      }
    }
  }
  if (!model_.vocabulary || !model_.vocabulary->unembedding) return;
  const std::string& map = model_.vocabulary->unembedding->weight.tensor;
  if (!map.ends_with(".weight")) return;
  for (const checkpoint::Tensor& tensor : inventory_.starting_with(map.substr(0, map.size() - 6))) {
    if (!used(tensor)) {
      add_not_modelled(model_.vocabulary->not_modelled, fmt::format("tensor \"{}\"", tensor.name));
    }
  }
}

// RMSNorm has no bias: a file that stores one is of another family, whatever its names.
void Builder::flag_biased_norms() {
  std::string first;
  for (Norm& norm : model_.norms) {
    if (norm.kind != NormKind::rms || !norm.bias) continue;
    norm.kind = NormKind::layer;
    if (first.empty()) first = norm.bias->tensor;
  }
  if (first.empty()) return;
  note(fmt::format(
      "\"{}\" is the bias of a norm; RMSNorm has none, so norms with one are taken for LayerNorm", first));
  add_not_modelled(model_, Effect::everything, fmt::format("tensor \"{}\"", first));
}

void Builder::flag_fields(std::span<const std::string_view> harmless) {
  earlier_towers_.push_back(config_);
  for (const Config& config : earlier_towers_) {
    for (const Config::Field& field : config.unread()) {
      add_not_modelled(model_, effect_of(field, harmless), fmt::format("{}: {}", field.key, field.value));
    }
  }
}

}  // namespace normscope::model
