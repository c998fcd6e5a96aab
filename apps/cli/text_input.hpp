#pragma once

#include <optional>
#include <string>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/tokenizer.hpp>
#include <normscope/models/model.hpp>

#include "command.hpp"

/// A decoder and a text for it, as `trace`, `attribute` and `report` take them.
namespace normscope::cli {

struct TextInput {
  ModelName model{};
  std::optional<std::string> text{};
  std::string file{};  ///< which holds the text, in its place
  std::vector<std::size_t> tokens{};
  std::string names{};
  std::string activation{};

  [[nodiscard]] bool given() const { return text || !file.empty() || !tokens.empty(); }
};

[[nodiscard]] std::vector<Argument> text_inputs(TextInput& input);
[[nodiscard]] std::vector<Argument> text_options(TextInput& input);

/// The model, the tokens of the text, and their names.
struct Context {
  const files::Checkpoint& checkpoint;
  models::Model model;
  std::vector<std::size_t> tokens{};
  std::vector<std::string> names{};               ///< as text; empty if no file names tokens
  std::optional<forward::Tokenizer> tokenizer{};  ///< of the text, if there is one
  bool whole = true;                              ///< whether a file of text was read to its end
};

/// Bytes of a file that are read as text.
inline constexpr std::size_t longest_beginning = std::size_t{1} << 14;

/// Errors    as `forward::Decoder`, `forward::Tokenizer`; Unsupported for a text without a tokenizer;
/// Argument
///           for an empty text, and for an activation that the file states itself; Io, Format for a file of
///           text
[[nodiscard]] Context context_of(const TextInput& input, Inputs& inputs);

}  // namespace normscope::cli
