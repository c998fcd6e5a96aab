#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normscope::lab {

/// Token i is the character `alphabet[i]`. Token 0, the newline, stands before and after every word.
inline constexpr std::string_view alphabet = "\n'abcdefghijklmnopqrstuvwxyz";
inline constexpr std::int64_t separator = 0;

/// The token of a character, nothing for one outside the alphabet.
[[nodiscard]] std::optional<std::int64_t> token(char character);

/// A word list, split by a hash so that a word and its possessive fall on the same side.
struct WordLists {
  std::vector<std::string> training;    ///< sorted, without duplicates, like `validation`
  std::vector<std::string> validation;  ///< about one word in ten
  std::size_t dropped = 0;              ///< lines with a character outside the alphabet
  std::uint64_t fingerprint = 0;        ///< hash of all words kept
};

/// Reads one word a line, in lower case. Words of other characters than a to z and the apostrophe
/// are left out.
///
/// Errors    Io; Argument when a list stays empty or a word has more than `longest` characters
[[nodiscard]] WordLists read_words(const std::filesystem::path& path, std::size_t longest);

}  // namespace normscope::lab
