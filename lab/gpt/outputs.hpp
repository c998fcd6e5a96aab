#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "network.hpp"
#include "recipe.hpp"
#include "training.hpp"

namespace normscope::lab {

/// Writes `text` to `path`, atomically.
///
/// Errors    Io
void write_text(const std::filesystem::path& path, std::string_view text);

/// Writes the trained model as a folder that Hugging Face's GPT2LMHeadModel opens:
/// model.safetensors, config.json and tokenizer.json, each atomically.
///
/// Shapes    values (total count of the recipe's parameters)
///
/// Errors    Io
void write_model(const std::filesystem::path& folder, const Job& job, std::span<const float> values);

/// The README.md of a trained model: its architecture and training, its loss compared with counts of tokens,
/// what its norms learned, a sample, and the command that reproduces it.
[[nodiscard]] std::string model_card(const Job& job, Network& network, const TrainingState& state);

}  // namespace normscope::lab
