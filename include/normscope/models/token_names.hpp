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

/// The first of tokenizer.json, vocab.json, vocab.txt, tokenizer.bin and tok<tokens>.bin in `folder`;
/// llama2.c calls tokenizers of its own training by the last of these, whose number of tokens, if it is
/// given, is known.
[[nodiscard]] std::optional<std::filesystem::path> find_token_names(const std::filesystem::path& folder,
                                                                    std::size_t tokens = 0);

/// The character, in UTF-8, by which GPT-2's vocabulary and other byte-level ones spell a byte.
[[nodiscard]] std::string visible_byte(unsigned char byte);

/// The names as text: where some name begins with the mark of SentencePiece for a space (▁), that mark is a
/// space in all of them; where one begins with that of byte-level vocabularies (Ġ), all are the bytes that
/// they spell, but for those with other characters.
[[nodiscard]] std::vector<std::string> token_texts(std::vector<std::string> names);

}  // namespace normscope::models
