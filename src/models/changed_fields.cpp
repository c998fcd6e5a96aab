#include <algorithm>
#include <map>
#include <string_view>

#include <normscope/models/model.hpp>

#include "config.hpp"
#include "fields.hpp"

namespace normscope::models {

namespace {

/// The name by which a field is known, without the section that it stands in and what it contains.
std::string_view key_of(std::string_view path) {
  for (const std::string_view section : {"text_config.", "vision_config.", "model.encoder."}) {
    if (path.starts_with(section)) path.remove_prefix(section.size());
  }
  return path.substr(0, path.find('.'));
}

struct Contained {
  std::string_view key;
  Described where;
};

/// The fields that a description contains wholly where it reads them. Of others, such as the number of
/// layers, it contains less than they say.
constexpr Contained contained[] = {
    {"hidden_size", Described::norms},
    {"n_embd", Described::norms},
    {"d_model", Described::norms},
    {"num_attention_heads", Described::heads},
    {"n_head", Described::heads},
    {"num_heads", Described::heads},
    {"n_heads", Described::heads},
    {"nhead", Described::heads},
    {"head_dim", Described::heads},
    {"num_key_value_heads", Described::heads},
    {"rope_theta", Described::heads},
    {"rope_scaling", Described::heads},
    {"rope_parameters", Described::heads},
    {"partial_rotary_factor", Described::heads},
    {"rotary_pct", Described::heads},
    {"rotary_dim", Described::heads},
    {"sliding_window", Described::heads},
    {"attn_logit_softcapping", Described::heads},
    {"query_pre_attn_scalar", Described::heads},
    {"attention_multiplier", Described::heads},
    {"scale_attn_weights", Described::heads},
    {"scale_attn_by_inverse_layer_idx", Described::heads},
    {"tie_word_embeddings", Described::logits},
    {"logit_scale", Described::logits},
    {"logits_scaling", Described::logits},
    {"final_logit_softcapping", Described::logits},
    {"hidden_act", Described::stream},
    {"hidden_activation", Described::stream},
    {"activation_function", Described::stream},
    {"embedding_multiplier", Described::stream},
    {"residual_multiplier", Described::stream},
};

/// Where the descriptions of both models contain what the field says.
Described described(const std::string& path, const Model& old_model, const Model& new_model) {
  if (!old_model.fields_read.contains(path) && !new_model.fields_read.contains(path)) {
    return Described::nowhere;
  }
  const std::string_view key = key_of(path);
  if (key.ends_with("eps") || key.ends_with("epsilon")) return Described::norms;
  for (const Contained& one : contained) {
    if (one.key != key) continue;
    const bool is_there = one.where == Described::heads ? !old_model.heads.empty() && !new_model.heads.empty()
                          : one.where == Described::logits ? old_model.vocabulary && new_model.vocabulary
                          : one.where == Described::stream ? old_model.decoder && new_model.decoder
                                                           : true;
    return is_there ? one.where : Described::nowhere;
  }
  return Described::nowhere;
}

}  // namespace

bool has_configuration(const files::Checkpoint& checkpoint) { return !Config(checkpoint).fields().empty(); }

std::vector<ChangedField> changed_fields(const files::Checkpoint& old_file, const Model& old_model,
                                         const files::Checkpoint& new_file, const Model& new_model) {
  const std::map<std::string, std::string> before = Config(old_file).fields();
  const std::map<std::string, std::string> after = Config(new_file).fields();
  const bool of_one_form = (old_file.format() == "gguf") == (new_file.format() == "gguf");
  std::vector<ChangedField> changes;
  const auto add = [&](const std::string& path, const std::string& a, const std::string& b) {
    if (a == b || is_inert(key_of(path)) || (!of_one_form && (a.empty() || b.empty()))) return;
    changes.push_back({path, a, b, described(path, old_model, new_model)});
  };
  const auto value = [](const std::map<std::string, std::string>& fields, const std::string& path) {
    const auto found = fields.find(path);
    return found == fields.end() ? std::string() : found->second;
  };
  for (const auto& [path, text] : before) add(path, text, value(after, path));
  for (const auto& [path, text] : after) {
    if (!before.contains(path)) add(path, "", text);
  }
  std::sort(changes.begin(), changes.end(),
            [](const ChangedField& a, const ChangedField& b) { return a.field < b.field; });
  return changes;
}

}  // namespace normscope::models
