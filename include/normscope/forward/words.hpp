#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// How text is cut before it is looked up in a vocabulary.
namespace normscope::forward {

/// The characters of UTF-8 text; a byte that belongs to none is one of its own.
[[nodiscard]] std::vector<std::string_view> split_characters(std::string_view text);

/// The number of them.
[[nodiscard]] inline std::size_t characters(std::string_view text) { return split_characters(text).size(); }

/// GPT-2's words, with the space before them: the matches of its pattern
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///
/// Errors    Unsupported for a character beyond ASCII
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);

/// The character, in UTF-8, by which GPT-2's vocabulary spells a byte.
[[nodiscard]] std::string visible_byte(unsigned char byte);

}  // namespace normscope::forward
