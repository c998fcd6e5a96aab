#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

namespace normscope::models {

/// The part of a multimodal model that a configuration describes.
enum class Tower { text, vision, audio };

/// What a checkpoint says about itself outside its tensors: the metadata of a GGUF file; config.json;
/// otherwise the metadata entry "config", which contains the same JSON; otherwise numbers in the text of the
/// metadata. A key is looked up in the tower's own section ("text_config", "vision_config", "audio_config" or
/// "encoder_config"), in "model.encoder" and at the top level, in this order; a tower of vision or audio with
/// a section of its own uses only that. Refers to the checkpoint. Records which fields were requested; copies
/// share that record.
///
/// Errors    Format if config.json is not a JSON object, or if a requested value has the wrong type or an
///           absurd size; messages name file and key
class Config {
 public:
  /// `heads`, unless 0, stands for "num_attention_heads" where the configuration states no number of heads.
  ///
  /// Errors    in addition Argument where it states another one
  explicit Config(const files::Checkpoint& checkpoint, std::uint64_t heads = 0);

  /// The keys under which configurations state the number of attention heads of a layer.
  static constexpr std::initializer_list<const char*> heads_keys = {"num_attention_heads", "n_head",
                                                                    "num_heads", "n_heads", "nhead"};

  /// The configuration of one tower of the model; initially `Tower::text`.
  [[nodiscard]] Config of(Tower tower) const;
  /// Whether the tower has a section of its own.
  [[nodiscard]] bool has_section(Tower tower) const;

  using Keys = std::initializer_list<const char*>;

  /// The values of "model_type": the top level's, then the tower's own; without any, "_class_name".
  [[nodiscard]] std::vector<std::string> model_types() const;
  /// An integer from 1 to 1,000,000, the value of the first of `keys` that exists.
  [[nodiscard]] std::optional<std::uint64_t> count(Keys keys) const;
  /// A list of such integers; a single one counts as a list of one.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> counts(Keys keys) const;
  /// A number of positions or layers up to 1e12; 0 counts as absent.
  [[nodiscard]] std::optional<std::uint64_t> positions(Keys keys) const;
  /// Whether one of `keys` exists, even with value null.
  [[nodiscard]] bool states(Keys keys) const;
  /// A finite number >= 0.
  [[nodiscard]] std::optional<double> number(Keys keys) const;
  /// A number; `false`, which some writers use for "none", counts as absent.
  [[nodiscard]] std::optional<double> number_or_false(Keys keys) const;
  [[nodiscard]] std::optional<bool> flag(Keys keys) const;
  /// Whether this or an outer section says so; the value of another type counts as absent.
  [[nodiscard]] bool any_flag(const char* key) const;
  [[nodiscard]] std::optional<std::string> text(Keys keys) const;
  /// The description contains this value of the field; another one stays a field that nothing read.
  void expect(const char* key, std::string_view text) const;
  /// A list of strings.
  [[nodiscard]] std::optional<std::vector<std::string>> texts(Keys keys) const;
  /// A list of finite numbers.
  [[nodiscard]] std::optional<std::vector<double>> numbers(Keys keys) const;
  /// The object at the first of `keys` that exists, as a configuration of its own.
  [[nodiscard]] std::optional<Config> inside(Keys keys) const;
  /// Whether one of `keys` has a value other than null.
  [[nodiscard]] bool has(Keys keys) const;
  /// A field of the tower's own section that was not requested; null, empty text, lists and objects are left
  /// out.
  struct Field {
    std::string key;
    std::string value;  ///< as "false", "1.5", the text itself, or "an object"
  };
  [[nodiscard]] std::vector<Field> unread() const;
  /// All fields by their path, such as "text_config.rope_scaling.factor", as JSON text. Null and empty text,
  /// lists and objects, which stand for "not set", are left out.
  [[nodiscard]] std::map<std::string, std::string> fields() const;
  /// The paths of the fields that were requested.
  [[nodiscard]] std::set<std::string> read() const;

  /// The source of the values for messages: "config.json", "metadata \"config\"" or "metadata".
  [[nodiscard]] const std::string& where() const;
  /// Likewise.
  [[nodiscard]] Source source() const;

  /// The number in a word of the metadata such as "heads8", for `word` "heads".
  [[nodiscard]] std::optional<std::uint64_t> metadata_count(std::string_view word) const;

  struct Eps {
    double value;
    Source source;
  };
  /// The names under which configurations state the eps of the norms.
  static constexpr std::initializer_list<const char*> eps_keys = {"layer_norm_epsilon", "layer_norm_eps",
                                                                  "rms_norm_eps",       "norm_eps",
                                                                  "norm_epsilon",       "layernorm_epsilon"};
  /// The eps of the norms: from the configuration, under any of those names, otherwise the number that
  /// follows "eps" in the metadata, as in "LayerNorm eps=1e-5".
  [[nodiscard]] std::optional<Eps> eps() const;

 private:
  [[nodiscard]] std::optional<double> metadata_eps() const;

  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

/// The metadata of a GGUF file as a configuration with Hugging Face's field names. "model_type" is
/// "general.architecture". Entries about the tokenizer and the file are left out; those that have no
/// counterpart keep their own names, without the architecture's and "attention." before them.
[[nodiscard]] nlohmann::json gguf_config(const std::map<std::string, std::string, std::less<>>& metadata);

/// What an unread configuration field could affect.
enum class Effect { none, scores, logits, everything };

/// The effect of a field, by the table in fields.cpp. An unknown field may affect everything. `harmless`:
/// names without effect for the current architecture; '*' stands for any characters.
[[nodiscard]] Effect effect_of(const Config::Field& field, std::span<const std::string_view> harmless);

/// Adds `what` to a list of features that are not modelled, unless it is empty or already there.
void add_not_modelled(std::string& list, std::string_view what);

/// Adds `what` to every head and to the vocabulary, according to `effect`.
void add_not_modelled(Model& model, Effect effect, std::string_view what);

/// The rotary embedding of an architecture if its configuration does not specify it.
struct RotaryStyle {
  bool interleaved = false;
  bool is_fixed = false;    ///< the class reads no field but the number of coordinates that rotate
  double theta = 10'000.0;  ///< 0: versions differ, so the configuration has to state it
  bool has_local_theta = false;
  double local_theta = 10'000.0;  ///< for layers with a window, if they have a base of their own
  /// Fraction of a head's coordinates that rotate if the configuration states none. Empty: the class rotates
  /// all of them, whatever the configuration states.
  std::optional<double> portion{};
  std::size_t dims = 0;           ///< or their number, which takes precedence
  bool windows_unscaled = false;  ///< "rope_scaling" does not concern layers with a window
  /// "rope_parameters" holds an object for each kind of layer, as it does with either of these two
  /// properties.
  bool by_kind = false;
  bool must_state = false;  ///< the class scales frequencies where neither of these sections is stated
  /// The names under which the class reads its numbers outside of "rope_parameters".
  const char* theta_key = "rope_theta";
  const char* local_theta_key = "rope_local_base_freq";
  const char* portion_key = "partial_rotary_factor";
  /// A name of the portion that the class does not read, but other programs may.
  const char* other_portion_key = "partial_rotary_factor";
  bool windows_only = false;  ///< layers without a window do not rotate
  bool sections = false;      ///< positions of images are several numbers, those of text one
  bool backwards = false;     ///< pairs turn the other way
  /// Queries and keys are normalized, without a gain, after the rotation, which keeps their length.
  bool before_norms = false;
  std::uint64_t still_every = 0;  ///< layers without rotation: every so-many-th; 0 for none
};

/// A rotary embedding as specified by a configuration.
struct StatedRotary {
  Rotary rotary{};
  std::string not_modelled{};  ///< field and value; `rotary` is then meaningless
  std::vector<std::string> notes{};
};

/// The rotary embedding of a layer of `kind` ("full_attention", "sliding_attention", or empty if all layers
/// are alike), for heads of `head_dim` coordinates. Base frequencies are theta^(-2j/dims). The rope types
/// default, linear, llama3 and yarn are those of modeling_rope_utils in Hugging Face's transformers. Types
/// dynamic and longrope leave the frequencies out, because they change with the length of the context.
///
/// Errors    Format for values of the wrong type, or that make frequencies which are not finite
[[nodiscard]] StatedRotary stated_rotary(const Config& config, const RotaryStyle& style, std::size_t head_dim,
                                         std::string_view kind = {});

}  // namespace normscope::models
