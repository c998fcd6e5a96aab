#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "recipe.hpp"

namespace normscope::lab {

/// Writes `text` to `path`, atomically.
///
/// Errors    Io
void write_text(const std::filesystem::path& path, std::string_view text);

/// Writes the trained model as a folder that Hugging Face's GPT2LMHeadModel opens:
/// model.safetensors, config.json and vocab.json, each atomically.
///
/// Shapes    values (total count of the recipe's parameters)
///
/// Errors    Io
void write_model(const std::filesystem::path& folder, const Recipe& recipe, std::span<const float> values);

}  // namespace normscope::lab
