#include "not_modelled.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "builder.hpp"

namespace normscope::models {

namespace {

/// The common prefix of the names of one attention's tensors: "h.0.attn." of "h.0.attn.c_attn.weight"; empty
/// if the projection has no siblings.
std::string_view attention_of(std::string_view projection) {
  if (projection.ends_with(".weight")) projection.remove_suffix(7);
  const std::size_t dot = projection.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : projection.substr(0, dot + 1);
}

/// Every linear map that the model describes, once for each place that has it.
template <typename Use>
void each_map(Model& model, const Use& use) {
  for (Norm& norm : model.norms) {
    for (Linear& map : norm.readers) use(map);
    for (Linear& map : norm.writers) use(map);
  }
  for (Head& head : model.heads) {
    for (std::optional<Linear>* map : {&head.between, &head.query, &head.key, &head.value}) {
      if (*map) use(**map);
    }
  }
  if (model.vocabulary && model.vocabulary->unembedding) use(*model.vocabulary->unembedding);
}

}  // namespace

void add_not_modelled(std::string& list, std::string_view what) {
  while (!what.empty()) {
    const std::size_t end = std::min(what.find("; "), what.size());
    const std::string_view entry = what.substr(0, end);
    if (list.find(entry) == std::string::npos) {
      if (!list.empty()) list += "; ";
      list += entry;
    }
    what.remove_prefix(std::min(end + 2, what.size()));
  }
}

void add_not_modelled(Model& model, Effect effect, std::string_view what) {
  const bool everything = effect == Effect::everything;
  if (effect == Effect::scores || everything) {
    for (Head& head : model.heads) add_not_modelled(head.not_modelled, what);
  }
  if (model.vocabulary && (effect == Effect::logits || everything)) {
    add_not_modelled(model.vocabulary->not_modelled, what);
  }
  if (!everything) return;
  add_not_modelled(model.not_modelled, what);
  if (model.decoder) add_not_modelled(model.decoder->not_modelled, what);
  each_map(model, [&](Linear& map) { add_not_modelled(map.not_modelled, what); });
}

// Tensors beside the projections that were not described can affect the scores: learned sinks, relative
// positions, norms of queries and keys.
void Builder::flag_attention_leftovers() {
  for (Head& head : model_.heads) {
    if (!head.query) continue;
    const std::string_view attention = attention_of(head.query->weight.tensor);
    if (!attention.empty()) add_not_modelled(head.not_modelled, beside(attention));
  }
}

// The first tensor with this prefix that no description uses, in words; empty if there is none.
std::string Builder::beside(std::string_view prefix) const {
  for (const files::Tensor& tensor : inventory_.starting_with(prefix)) {
    if (!used(tensor)) return fmt::format("tensor \"{}\"", tensor.name);
  }
  return {};
}

// The same for a parameter "q_proj.weight" or "experts.gate_up_proj": adapters (q_proj.lora_A.weight), scales
// of quantized values (q_proj.weight_scale, experts.gate_up_proj_scale), parametrizations.
std::string Builder::beside_parameter(const std::string& tensor) const {
  const std::string stem = tensor.substr(0, tensor.ends_with(".weight") ? tensor.size() - 7 : tensor.size());
  for (const char* separator : {".", "_"}) {
    if (*separator == '_' && stem.size() != tensor.size()) continue;
    if (std::string found = beside(stem + separator); !found.empty()) return found;
  }
  return {};
}

// Fills `not_modelled` of everything from what lies beside the tensors that it uses. Whatever is computed
// from a map or norm that is not modelled is not modelled either.
void Builder::flag_tensors_beside() {
  std::map<std::string, std::string> known;
  const auto found = [&](const std::string& tensor) -> const std::string& {
    const auto [place, is_new] = known.try_emplace(tensor);
    if (is_new) place->second = beside_parameter(tensor);
    return place->second;
  };
  each_map(model_, [&](Linear& map) { add_not_modelled(map.not_modelled, found(map.weight.tensor)); });
  for (Norm& norm : model_.norms) {
    if (norm.gain) add_not_modelled(norm.not_modelled, found(norm.gain->tensor));
  }
}

void Builder::gather_not_modelled() {
  std::map<std::string_view, std::string_view> norms;
  for (const Norm& norm : model_.norms) {
    if (!norm.not_modelled.empty()) norms.emplace(norm.name, norm.not_modelled);
  }
  const auto add_norm_of = [&](std::string& list, const std::string& name) {
    if (const auto found = norms.find(name); found != norms.end()) add_not_modelled(list, found->second);
  };
  for (Head& head : model_.heads) {
    for (const std::optional<Linear>* map : {&head.between, &head.query, &head.key}) {
      if (!*map) continue;
      add_not_modelled(head.not_modelled, (*map)->not_modelled);
      if (norms.empty()) continue;
      if (const Norm* const own = own_norm(model_, **map)) add_norm_of(head.not_modelled, own->name);
    }
    add_norm_of(head.not_modelled, head.norm);
    for (const std::string& norm : head.later_norms) add_norm_of(head.not_modelled, norm);
  }
  if (model_.vocabulary) {
    std::string& list = model_.vocabulary->not_modelled;
    if (model_.vocabulary->unembedding) {
      add_not_modelled(list, model_.vocabulary->unembedding->not_modelled);
    }
    add_norm_of(list, model_.vocabulary->final_norm);
  }
  if (!model_.decoder) return;
  // The first thing suffices: an adapter may have tensors in every layer.
  std::string& whole = model_.decoder->not_modelled;
  each_map(model_, [&](const Linear& map) {
    if (whole.empty()) whole = map.not_modelled;
  });
  if (whole.empty() && !norms.empty()) whole = norms.begin()->second;
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

std::string not_normalizing(const Norm& norm) {
  return norm.effect() == NormEffect::off
             ? fmt::format("not modelled: {} has eps {:g}, so normalization is off", norm.name, norm.eps)
             : fmt::format("not modelled: {} is {}, an elementwise kind", norm.name, facts(norm.kind).title);
}

}  // namespace normscope::models
