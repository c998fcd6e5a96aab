#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace normscope::models {

/// Names of the tokens 0 … tokens − 1 as spelled in a vocabulary file, empty for tokens that it does not
/// name:
///   tokenizer.json   "model"."vocab", an object or a list of pairs, then "added_tokens"
///   *.json           one object {name: number}
///   *.txt            a name a line
///   *.bin            llama2.c: int32 longest length; a token: float32 score, int32 length, bytes
/// Bytes are kept as they are; callers escape them for output.
///
/// Errors    Io; Format, naming the file
///
/// Cost      O(file), no more memory than the file's size and `tokens` empty names
[[nodiscard]] std::vector<std::string> read_token_names(const std::filesystem::path& file,
                                                        std::size_t tokens);

/// The scores of the tokens 0 … tokens − 1 of a llama2.c tokenizer, 0 for tokens that it lacks.
///
/// Errors    Io; Format, naming the file
[[nodiscard]] std::vector<float> read_token_scores(const std::filesystem::path& file, std::size_t tokens);

/// The first of tokenizer.json, vocab.json, vocab.txt and tokenizer.bin in `folder`.
[[nodiscard]] std::optional<std::filesystem::path> find_token_names(const std::filesystem::path& folder);

}  // namespace normscope::models
