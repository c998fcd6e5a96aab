#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

namespace normscope::model {

/// The part of a model of several modalities that a configuration speaks of.
enum class Tower { text, vision };

/// What a checkpoint says about itself outside its tensors: config.json, else the metadata entry
/// "config" that holds the same JSON, else numbers in the words of the metadata.
/// A key is looked up in the tower's own section ("text_config" or "vision_config"), in "model.encoder" and
/// at the top level, in this order; a vision tower with a section of its own takes nothing from elsewhere.
/// Refers to the checkpoint. Remembers which fields were asked for; copies share that memory.
/// Errors    Format when config.json is not a JSON object, or when a value asked for has the wrong
///           type or is absurd; messages name file and key
class Config {
 public:
  explicit Config(const checkpoint::Checkpoint& checkpoint);

  /// The configuration of one tower of the model; read as `Tower::text` until then.
  [[nodiscard]] Config of(Tower tower) const;
  /// Whether the tower has a section of its own.
  [[nodiscard]] bool has_section(Tower tower) const;

  using Keys = std::initializer_list<const char*>;

  /// The values of "model_type": the top level's, then the tower's own.
  [[nodiscard]] std::vector<std::string> model_types() const;
  /// A whole number from 1 to 1,000,000 under the first of `keys` that is there.
  [[nodiscard]] std::optional<std::uint64_t> count(Keys keys) const;
  /// A whole number of positions or layers up to 1e12; 0 counts as absent.
  [[nodiscard]] std::optional<std::uint64_t> positions(Keys keys) const;
  /// Whether one of `keys` is there, be it null.
  [[nodiscard]] bool states(Keys keys) const;
  /// A finite number >= 0.
  [[nodiscard]] std::optional<double> number(Keys keys) const;
  /// A number; `false`, which some writers put for "none", counts as absent.
  [[nodiscard]] std::optional<double> number_or_false(Keys keys) const;
  [[nodiscard]] std::optional<bool> flag(Keys keys) const;
  [[nodiscard]] std::optional<std::string> text(Keys keys) const;
  /// A list of strings.
  [[nodiscard]] std::optional<std::vector<std::string>> texts(Keys keys) const;
  /// A list of finite numbers.
  [[nodiscard]] std::optional<std::vector<double>> numbers(Keys keys) const;
  /// The object under the first of `keys` that is there, as a configuration of its own.
  [[nodiscard]] std::optional<Config> inside(Keys keys) const;
  /// Whether a value other than null is there under one of `keys`.
  [[nodiscard]] bool has(Keys keys) const;
  /// A field of the tower's own section that nobody has asked for; null, empty text, lists and objects are
  /// left out.
  struct Field {
    std::string key;
    std::string value;  ///< as "false", "1.5", the text itself, or "an object"
  };
  [[nodiscard]] std::vector<Field> unread() const;

  /// Where the values come from, in words: "config.json", or "metadata \"config\"".
  [[nodiscard]] const std::string& where() const;
  /// Likewise.
  [[nodiscard]] Source source() const;

  /// The number in a metadata word such as "heads8", for `word` "heads".
  [[nodiscard]] std::optional<std::uint64_t> metadata_count(std::string_view word) const;

  struct Eps {
    double value;
    Source source;
  };
  /// The eps of the norms: the configuration's, else the number that follows "eps" in the metadata, as
  /// in "LayerNorm eps=1e-5".
  [[nodiscard]] std::optional<Eps> eps() const;

 private:
  [[nodiscard]] std::optional<double> metadata_eps() const;

  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

}  // namespace normscope::model
