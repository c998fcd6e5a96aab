#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/random.hpp>

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

/// At most `count` words, evenly spaced over `words`.
[[nodiscard]] std::vector<std::string> thinned(std::span<const std::string> words, std::size_t count);

/// Target of a position that no loss is counted at.
inline constexpr std::int64_t uncounted = -1;

/// Rows of tokens, and for each position the token that follows.
///
/// Shapes    inputs, targets (rows × length)
struct Batch {
  std::size_t rows = 0;
  std::size_t length = 0;
  std::vector<std::int64_t> inputs;
  std::vector<std::int64_t> targets;
};

/// One word a row, from the newline before it to the newline after it; shorter words are padded.
[[nodiscard]] Batch one_word_a_row(std::span<const std::string> words);

/// Endless rows of training words in an order shuffled anew for every pass. A row begins with a
/// newline; a word cut by the row's end begins again in the next row.
class TrainingRows {
 public:
  /// Requires  words is not empty and outlives this object; no word has more than context − 1 characters
  TrainingRows(std::span<const std::string> words, std::size_t context, std::uint64_t seed);

  [[nodiscard]] Batch next(std::size_t rows);

 private:
  const std::string& next_word();

  std::span<const std::string> words_;
  std::size_t context_;
  Random random_;
  std::vector<std::size_t> order_;
  std::size_t position_ = 0;
};

}  // namespace normscope::lab
