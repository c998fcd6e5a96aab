#pragma once

#include <optional>
#include <string>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/tokenizer.hpp>
#include <normscope/models/model.hpp>

#include "command.hpp"

/// A decoder and a text for it, as `trace` and `attribute` take them.
namespace normscope::cli {

struct TextInput {
  ModelName model{};
  std::optional<std::string> text{};
  std::vector<std::size_t> tokens{};
  std::string names{};
  std::string activation{};
};

[[nodiscard]] std::vector<Argument> text_inputs(TextInput& input);
[[nodiscard]] std::vector<Argument> text_options(TextInput& input);

/// The model, the tokens of the text, and their names.
struct Context {
  const files::Checkpoint& checkpoint;
  models::Model model;
  std::vector<std::size_t> tokens{};
  std::vector<std::string> names{};               ///< empty if no file names tokens
  std::optional<forward::Tokenizer> tokenizer{};  ///< of the text, if there is one
};

/// Errors    as `forward::Decoder`, `forward::Tokenizer`; Unsupported for a text without a tokenizer;
/// Argument
///           for an empty text, and for an activation that the file states itself
[[nodiscard]] Context context_of(const TextInput& input, Inputs& inputs);

}  // namespace normscope::cli
