#pragma once

#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace normscope::models {

/// The metadata of a GGUF file as a configuration with Hugging Face's field names. "model_type" is
/// "general.architecture". Entries about the tokenizer and the file are left out; those that have no
/// counterpart keep their own names, without the architecture's and "attention." before them.
[[nodiscard]] nlohmann::json gguf_config(const std::map<std::string, std::string, std::less<>>& metadata);

}  // namespace normscope::models
