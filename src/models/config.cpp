#include "config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/files/json_value.hpp>

namespace normscope::models {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLargestCount = 1'000'000;
constexpr double kMostPositions = 1e12;

// A value in the form used in error messages.
std::string shown(const Json& value) {
  if (value.is_object() || value.is_array()) return fmt::format("an {}", value.type_name());
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    return std::isnan(value.get<double>()) ? "NaN" : value.get<double>() > 0.0 ? "Infinity" : "-Infinity";
  }
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 40 ? text : text.substr(0, 40) + "...";
}

// Null and empty text, lists and objects stand for "not set".
bool is_unset(const Json& value) {
  return value.is_null() || (value.is_structured() && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

std::optional<std::uint64_t> count_of(const Json& value) {
  const double number = value.is_number() ? value.get<double>() : 0.0;
  if (!(number >= 1.0 && number <= static_cast<double>(kLargestCount) && std::floor(number) == number)) {
    return {};
  }
  return static_cast<std::uint64_t>(number);
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

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
    {"expert_weights_norm", "norm_topk_prob"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"head_count", "num_attention_heads"},
    {"head_count_kv", "num_key_value_heads"},
    {"key_length", "head_dim"},
    {"layer_norm_epsilon", "layer_norm_epsilon"},
    {"layer_norm_rms_epsilon", "rms_norm_eps"},
    {"causal", "is_causal"},
    {"clamp_kqv", "clip_qkv"},
    {"scale", "attention_scale"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
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

/// "layer_types" of a list that says of each layer whether it has a window. A period keeps its name.
void read_windows(Json& config) {
  const Json pattern = config.value("sliding_window_pattern", Json());
  if (!pattern.is_array()) return;
  Json kinds = Json::array();
  for (const Json& windowed : pattern) {
    if (!windowed.is_boolean()) return;
    kinds.push_back(windowed.get<bool>() ? "sliding_attention" : "full_attention");
  }
  config.erase("sliding_window_pattern");
  config["layer_types"] = std::move(kinds);
}

/// The number of layers of the forward pass: "block_count" includes those that predict further tokens.
void read_layers(Json& config) {
  const Json layers = config.value("num_hidden_layers", Json());
  const Json further = config.value("nextn_predict_layers", Json());
  if (!layers.is_number_unsigned() || !further.is_number_unsigned() || further >= layers) return;
  config["num_hidden_layers"] = layers.get<std::uint64_t>() - further.get<std::uint64_t>();
  config.erase("nextn_predict_layers");
}

/// "rope_scaling" of a linear type, which is also the default, and of YaRN without factors of its own; other
/// types keep their fields.
void read_scaling(Json& config) {
  const auto entry = [&](const char* key) {
    return config.value(std::string("rope.scaling.") + key, Json());
  };
  const std::string type = entry("type").is_string() ? entry("type").get<std::string>() : "linear";
  const Json factor = entry("factor");
  const bool is_yarn = type == "yarn" && factor.is_number() && entry("yarn_log_multiplier").is_null() &&
                       entry("yarn_attn_factor").is_null() && entry("yarn_ext_factor").is_null();
  if (type != "linear" && type != "none" && !is_yarn) return;
  if (type != "none" && factor.is_number() && factor != 0.0) {
    Json scaling = {{"rope_type", type}, {"factor", factor}};
    if (is_yarn) {
      for (const auto& [key, name] :
           {std::pair{"original_context_length", "original_max_position_embeddings"},
            {"yarn_beta_fast", "beta_fast"},
            {"yarn_beta_slow", "beta_slow"}}) {
        if (const Json value = entry(key); !value.is_null()) scaling[name] = value;
      }
    }
    config["rope_scaling"] = std::move(scaling);
  }
  for (const char* key : {"type", "factor", "finetuned", "original_context_length"}) {
    config.erase(std::string("rope.scaling.") + key);
  }
  if (!is_yarn) return;
  for (const char* key : {"yarn_beta_fast", "yarn_beta_slow"})
    config.erase(std::string("rope.scaling.") + key);
}

/// Leaves out how matrices are stored, which `files` has made use of, but for what rounds their inputs.
void keep_input_rounding(Json& config) {
  for (Json* section : {&config, config.contains("text_config") ? &config["text_config"] : nullptr}) {
    if (section == nullptr || !section->is_object()) continue;
    section->erase("quantization");
    const Json stated = section->value("quantization_config", Json());
    section->erase("quantization_config");
    if (!stated.is_object()) continue;
    std::string rounding;
    if (const Json scheme = stated.value("activation_scheme", Json()); scheme.is_string()) {
      rounding = scheme.get<std::string>();
    }
    const Json groups = stated.value("config_groups", Json::object());
    for (const auto& [name, group] : groups.items()) {
      if (group.is_object() && group.value("input_activations", Json()).is_object()) rounding = name;
    }
    if (!rounding.empty()) (*section)["quantization_config"] = {{"input_rounding", rounding.substr(0, 40)}};
  }
}

}  // namespace

struct Config::Contents {
  explicit Contents(const files::Checkpoint& checkpoint) : metadata(checkpoint.metadata()) {}
  /// Whether the metadata are a configuration, and no free text.
  bool is_gguf = false;

  std::string where;
  std::string path;  // path of the object that contains these fields, such as "rope_scaling."
  Source source = Source::config;
  std::shared_ptr<const Json> root;
  std::shared_ptr<std::set<const Json*>> asked = std::make_shared<std::set<const Json*>>();
  std::vector<const Json*> sections;
  const std::map<std::string, std::string, std::less<>>& metadata;

  [[noreturn]] void reject(std::string_view key, const Json& value, std::string_view expected) const {
    throw Error(ErrorCode::Format, fmt::format("model: {}: \"{}{}\" is {}, expected {}", where, path, key,
                                               shown(value), expected));
  }

  // Many writers use null for "not set".
  const Json* child(const Json& section, const char* key) const {
    const auto found = section.find(key);
    return found == section.end() || found->is_null() ? nullptr : &*found;
  }

  const Json* section(const Json& parent, const char* key) const {
    const Json* found = child(parent, key);
    if (found != nullptr && !found->is_object()) reject(key, *found, "an object");
    return found;
  }

  // Sizes of heads belong to the number of heads beside them: a model around a text model has others.
  bool is_of_other_heads(const Json& place, Keys keys) const {
    const bool is_size = keys.size() == 1 && std::string_view(*keys.begin()) == "head_dim";
    return is_size && &place != sections.front() &&
           child(*sections.front(), "num_attention_heads") != nullptr;
  }

  // The value of the first key that a section has, with that key.
  std::pair<const char*, const Json*> find(Keys keys) const {
    for (const Json* place : sections) {
      if (is_of_other_heads(*place, keys)) continue;
      for (const char* key : keys) {
        if (const Json* value = child(*place, key)) {
          asked->insert(value);
          return {key, value};
        }
      }
    }
    return {nullptr, nullptr};
  }

  // Whether the configuration states a number of heads, which must be `heads`.
  bool states_heads(const Json& whole, std::uint64_t heads) const {
    const Json* own = section(whole, "text_config");
    for (const Json* place : {own, &whole}) {
      for (const char* key : heads_keys) {
        const Json* value = place == nullptr ? nullptr : child(*place, key);
        if (value == nullptr) continue;
        if (count_of(*value) == heads) return true;
        throw Error(ErrorCode::Argument, fmt::format("model: {}: \"{}\" is {}, but {} heads are stated",
                                                     where, key, shown(*value), heads));
      }
    }
    return false;
  }

  const Json* own_section(Tower tower) const {
    if (tower == Tower::text) return section(*root, "text_config");
    if (tower == Tower::vision) return section(*root, "vision_config");
    const Json* const own = section(*root, "audio_config");
    return own != nullptr ? own : section(*root, "encoder_config");
  }

  void look_in(Tower tower) {
    sections.clear();
    if (const Json* own = own_section(tower)) {
      sections.push_back(own);
      if (tower != Tower::text) return;
    }
    if (const Json* model = child(*root, "model"); model != nullptr && model->is_object()) {
      if (const Json* encoder = section(*model, "encoder")) sections.push_back(encoder);
    }
    sections.push_back(root.get());
  }
};

Config::Config(const files::Checkpoint& checkpoint, std::uint64_t heads) {
  const auto filled = std::make_shared<Contents>(checkpoint);
  Contents& contents = *filled;
  Json root = Json::object();
  if (checkpoint.format() == "gguf") {
    contents.is_gguf = true;
    contents.where = "metadata";
    contents.source = Source::metadata;
    root = gguf_config(contents.metadata);
  } else if (checkpoint.config_text()) {
    contents.where = "config.json";
    std::optional<Json> parsed = files::read_json(*checkpoint.config_text());
    if (!parsed) {
      throw Error(
          ErrorCode::Format,
          fmt::format("model: config.json: is not valid JSON of at most {} values, expected a JSON object",
                      files::most_json_values));
    }
    root = std::move(*parsed);
    if (!root.is_object()) {
      throw Error(ErrorCode::Format,
                  fmt::format("model: config.json: holds {}, expected a JSON object", shown(root)));
    }
  } else if (const auto embedded = contents.metadata.find("config"); embedded != contents.metadata.end()) {
    // Metadata is free text: text that is not a JSON object is a note of another program, not an error.
    std::optional<Json> parsed = files::read_json(embedded->second);
    if (parsed && parsed->is_object()) {
      contents.where = "metadata \"config\"";
      contents.source = Source::metadata;
      root = std::move(*parsed);
    }
  }
  if (!checkpoint.quantization().empty()) keep_input_rounding(root);
  const bool adds_heads = heads != 0 && !contents.states_heads(root, heads);
  if (adds_heads) root["num_attention_heads"] = heads;
  contents.root = std::make_shared<const Json>(std::move(root));
  contents.look_in(Tower::text);
  contents_ = filled;
}

Config Config::of(Tower tower) const {
  const auto contents = std::make_shared<Contents>(*contents_);
  contents->look_in(tower);
  Config config(*this);
  config.contents_ = contents;
  return config;
}

bool Config::has_section(Tower tower) const { return contents_->own_section(tower) != nullptr; }

std::vector<std::string> Config::model_types() const {
  std::vector<std::string> types;
  std::vector<const Json*> places = {contents_->root.get()};
  for (auto place = contents_->sections.rbegin(); place != contents_->sections.rend(); ++place) {
    if (*place != places.front()) places.push_back(*place);
  }
  for (const Json* place : places) {
    const Json* value = contents_->child(*place, "model_type");
    if (value == nullptr) continue;
    if (!value->is_string()) contents_->reject("model_type", *value, "a string");
    types.push_back(value->get<std::string>());
  }
  // diffusers names a class in place of a type.
  const Json* const named = types.empty() ? contents_->child(*contents_->root, "_class_name") : nullptr;
  if (named != nullptr && named->is_string()) types.push_back(named->get<std::string>());
  return types;
}

std::optional<std::uint64_t> Config::count(Keys keys) const {
  const auto [key, value] = contents_->find(keys);
  if (value == nullptr) return {};
  if (const std::optional<std::uint64_t> number = count_of(*value)) return number;
  contents_->reject(key, *value, fmt::format("a whole number from 1 to {}", kLargestCount));
}

std::optional<std::vector<std::uint64_t>> Config::counts(Keys keys) const {
  const auto [key, value] = contents_->find(keys);
  if (value == nullptr) return {};
  std::vector<std::uint64_t> numbers;
  const auto take = [&](const Json& entry) {
    const std::optional<std::uint64_t> number = count_of(entry);
    if (number) numbers.push_back(*number);
    return number.has_value();
  };
  const bool all = value->is_array() ? std::all_of(value->begin(), value->end(), take) : take(*value);
  if (!all) contents_->reject(key, *value, fmt::format("a whole number from 1 to {}", kLargestCount));
  return numbers;
}

std::optional<std::uint64_t> Config::positions(Keys keys) const {
  const auto [key, value] = contents_->find(keys);
  if (value == nullptr) return {};
  const double number = value->is_number() ? value->get<double>() : -1.0;
  if (!(number >= 0.0 && number <= kMostPositions && std::floor(number) == number)) {
    contents_->reject(key, *value, fmt::format("a whole number from 0 to {}", kMostPositions));
  }
  return number == 0.0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(number));
}

bool Config::states(Keys keys) const {
  return std::any_of(contents_->sections.begin(), contents_->sections.end(), [&](const Json* place) {
    return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return place->contains(key); });
  });
}

std::optional<double> Config::number(Keys keys) const {
  const auto [key, value] = contents_->find(keys);
  if (value == nullptr) return {};
  const double number = value->is_number() ? value->get<double>() : -1.0;
  if (!(number >= 0.0 && std::isfinite(number))) contents_->reject(key, *value, "a finite number >= 0");
  return number;
}

std::optional<double> Config::number_or_false(Keys keys) const {
  const auto [key, value] = contents_->find(keys);
  if (value == nullptr || (value->is_boolean() && !value->get<bool>())) return {};
  return number(keys);
}

std::optional<bool> Config::flag(Keys keys) const {
  const auto [key, value] = contents_->find(keys);
  if (value == nullptr) return {};
  if (!value->is_boolean()) contents_->reject(key, *value, "true or false");
  return value->get<bool>();
}

bool Config::any_flag(const char* key) const {
  return std::any_of(contents_->sections.begin(), contents_->sections.end(), [&](const Json* place) {
    const Json* value = contents_->child(*place, key);
    if (value != nullptr) contents_->asked->insert(value);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  });
}

std::optional<std::string> Config::text(Keys keys) const {
  const auto [key, value] = contents_->find(keys);
  if (value == nullptr) return {};
  if (!value->is_string()) contents_->reject(key, *value, "a string");
  return value->get<std::string>();
}

void Config::expect(const char* key, std::string_view text) const {
  const Json* const value = contents_->child(*contents_->sections.front(), key);
  if (value != nullptr && *value == text) contents_->asked->insert(value);
}

std::optional<std::vector<std::string>> Config::texts(Keys keys) const {
  const auto [key, value] = contents_->find(keys);
  if (value == nullptr) return {};
  const auto is_text = [](const Json& entry) { return entry.is_string(); };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_text)) {
    contents_->reject(key, *value, "a list of strings");
  }
  return value->get<std::vector<std::string>>();
}

std::optional<std::vector<double>> Config::numbers(Keys keys) const {
  const auto [key, value] = contents_->find(keys);
  if (value == nullptr) return {};
  const auto is_finite = [](const Json& entry) {
    return entry.is_number() && std::isfinite(entry.get<double>());
  };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_finite)) {
    contents_->reject(key, *value, "a list of finite numbers");
  }
  return value->get<std::vector<double>>();
}

std::optional<Config> Config::inside(Keys keys) const {
  const auto [key, value] = contents_->find(keys);
  if (value == nullptr) return {};
  if (!value->is_object()) contents_->reject(key, *value, "an object");
  const auto contents = std::make_shared<Contents>(*contents_);
  contents->path += std::string(key) + ".";
  contents->sections = {value};
  Config inner(*this);
  inner.contents_ = contents;
  return inner;
}

std::vector<Config::Field> Config::unread() const {
  std::vector<Field> fields;
  for (const auto& [key, value] : contents_->sections.front()->items()) {
    if (is_unset(value) || contents_->asked->count(&value) != 0) continue;
    const auto method = value.is_object() ? value.find("quant_method") : value.end();
    if (value.is_number()) {
      fields.push_back({key, fmt::format("{}", value.get<double>())});
    } else if (value.is_object() && method != value.end() && method->is_string()) {
      fields.push_back({key, method->get<std::string>().substr(0, 40)});
    } else {
      fields.push_back({key, value.is_string() ? value.get<std::string>().substr(0, 40) : shown(value)});
    }
  }
  return fields;
}

namespace {

using Visit = std::function<void(const std::string& path, const Json& value)>;

/// Calls `visit` with each value that is set, objects before what they contain.
void visit_fields(const std::string& path, const Json& object, const Visit& visit) {
  for (const auto& [key, value] : object.items()) {
    if (is_unset(value)) continue;
    visit(path + key, value);
    if (value.is_object()) visit_fields(path + key + ".", value, visit);
  }
}

}  // namespace

std::map<std::string, std::string> Config::fields() const {
  std::map<std::string, std::string> result;
  visit_fields("", *contents_->root, [&](const std::string& path, const Json& value) {
    // 1 and 1.0 are one number.
    if (value.is_number_float()) {
      result.emplace(path, fmt::format("{}", value.get<double>()));
    } else if (!value.is_object()) {
      result.emplace(path, value.dump(-1, ' ', true, Json::error_handler_t::replace));
    }
  });
  return result;
}

std::set<std::string> Config::read() const {
  std::set<std::string> result;
  visit_fields("", *contents_->root, [&](const std::string& path, const Json& value) {
    if (contents_->asked->count(&value) != 0) result.insert(path);
  });
  return result;
}

bool Config::has(Keys keys) const { return contents_->find(keys).second != nullptr; }

const std::string& Config::where() const { return contents_->where; }

Source Config::source() const { return contents_->source; }

std::optional<std::uint64_t> Config::metadata_count(std::string_view word) const {
  if (contents_->is_gguf) return {};
  for (const auto& [key, text] : contents_->metadata) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      if (at > 0 && is_word(text[at - 1])) continue;
      std::size_t end = at + word.size();
      std::uint64_t number = 0;
      while (end < text.size() && text[end] >= '0' && text[end] <= '9' && number <= kLargestCount) {
        number = number * 10 + static_cast<std::uint64_t>(text[end++] - '0');
      }
      const bool ends = end == text.size() || !is_word(text[end]);
      if (ends && number >= 1 && number <= kLargestCount) return number;
    }
  }
  return {};
}

std::optional<Config::Eps> Config::eps() const {
  if (const std::optional<double> configured = number(eps_keys)) return Eps{*configured, source()};
  if (const std::optional<double> stated = metadata_eps()) return Eps{*stated, Source::metadata};
  return {};
}

std::optional<double> Config::metadata_eps() const {
  if (contents_->is_gguf) return {};
  for (const auto& [key, text] : contents_->metadata) {
    for (std::size_t at = text.find("eps"); at != std::string::npos; at = text.find("eps", at + 1)) {
      if (at > 0 && is_word(text[at - 1])) continue;
      const std::size_t digits = text.find_first_not_of(" =:", at + 3);
      if (digits == std::string::npos || digits == at + 3) continue;
      const std::size_t end = std::min(text.find_first_not_of("0123456789.eE+-", digits), text.size());
      const std::string number = text.substr(digits, std::min<std::size_t>(end - digits, 32));
      // A JSON number; strtod would depend on the locale.
      const Json value = Json::parse(number, nullptr, false);
      if (value.is_number() && value.get<double>() >= 0.0 && value.get<double>() < 1.0) {
        return value.get<double>();
      }
    }
  }
  return {};
}

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
  read_windows(config);
  read_layers(config);
  // Entries without information: zero means "none", and values are usually as long as keys.
  for (const char* key : {"clip_qkv", "attention_scale", "num_attention_heads", "intermediate_size"}) {
    if (config.contains(key) && config[key] == 0.0) config.erase(key);
  }
  if (config.contains("value_length") && config["value_length"] == config.value("head_dim", Json())) {
    config.erase("value_length");
  }
  return config;
}

}  // namespace normscope::models
