#include "gguf_config.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <normscope/files/json_value.hpp>

namespace normscope::models {

namespace {

using Json = nlohmann::json;

/// Longer text is no list of numbers.
constexpr std::size_t longest_value = std::size_t{128} << 10;

constexpr auto gguf_fields = std::to_array<std::pair<std::string_view, const char*>>({
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"head_count", "num_attention_heads"},
    {"head_count_kv", "num_key_value_heads"},
    {"key_length", "head_dim"},
    {"layer_norm_epsilon", "layer_norm_epsilon"},
    {"layer_norm_rms_epsilon", "rms_norm_eps"},
    {"causal", "is_causal"},
    {"clamp_kqv", "clip_qkv"},
    {"scale", "attention_scale"},
    {"rope.freq_base", "rope_theta"},
    {"rope.dimension_count", "rope_dimension_count"},
});

/// Entries about the origin of a file and about its tokenizer.
bool is_about_the_file(std::string_view key) {
  constexpr std::array<std::string_view, 5> sections = {"general.", "tokenizer.", "split.", "quantize.",
                                                        "imatrix."};
  return std::any_of(sections.begin(), sections.end(),
                     [key](std::string_view section) { return key.starts_with(section); });
}

/// A value as it was stored: a number, a boolean, a list of these, else text.
Json value_of(const std::string& text) {
  if (text.size() > longest_value) return text;
  const std::optional<Json> value = files::read_json(text);
  return value && (value->is_number() || value->is_boolean() || value->is_array()) ? *value : Json(text);
}

/// "rope_scaling" of a linear type, which is also the default; other types keep their fields.
void read_scaling(Json& config) {
  const std::string type = config.contains("rope.scaling.type") && config["rope.scaling.type"].is_string()
                               ? config["rope.scaling.type"].get<std::string>()
                               : "linear";
  if (type != "linear" && type != "none") return;
  const Json factor = config.value("rope.scaling.factor", Json());
  if (type == "linear" && factor.is_number() && factor != 0.0) {
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
  }
  for (const char* key : {"type", "factor", "finetuned", "original_context_length"}) {
    config.erase(std::string("rope.scaling.") + key);
  }
}

}  // namespace

Json gguf_config(const std::map<std::string, std::string, std::less<>>& metadata) {
  Json config = Json::object();
  const auto architecture = metadata.find("general.architecture");
  const std::string prefix = architecture == metadata.end() ? "" : architecture->second + ".";
  if (!prefix.empty()) config["model_type"] = architecture->second;
  for (const auto& [key, text] : metadata) {
    if (is_about_the_file(key)) continue;
    std::string_view rest = key;
    if (!prefix.empty() && rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
    if (constexpr std::string_view section = "attention."; rest.starts_with(section)) {
      rest.remove_prefix(section.size());
    }
    const auto* const known = std::find_if(gguf_fields.begin(), gguf_fields.end(),
                                           [rest](const auto& field) { return field.first == rest; });
    config[known == gguf_fields.end() ? std::string(rest) : known->second] = value_of(text);
  }
  read_scaling(config);
  // Entries without information: zero means "none", and values are usually as long as keys.
  for (const char* key : {"clip_qkv", "attention_scale"}) {
    if (config.contains(key) && config[key] == 0.0) config.erase(key);
  }
  if (config.contains("value_length") && config["value_length"] == config.value("head_dim", Json())) {
    config.erase("value_length");
  }
  return config;
}

}  // namespace normscope::models
