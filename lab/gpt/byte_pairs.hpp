#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace normscope::lab {

/// A byte-level BPE as GPT-2's: token b is the byte b, and each merge makes the next token of two earlier
/// ones.
struct BytePairs {
  std::vector<std::string> tokens;  ///< bytes that each token stands for
  std::vector<std::pair<std::int64_t, std::int64_t>> merges;
  std::map<std::string, std::vector<std::int64_t>, std::less<>> words;  ///< of the texts, as tokens
};

/// A text and how often it counts.
struct WeightedText {
  std::string text;
  std::uint64_t weight = 1;
};

/// Merges the most frequent pair within words, again and again, until there are `tokens` tokens or no word
/// has a pair. Of equally frequent pairs, the one of the smallest token numbers comes first.
///
/// Source    [Sennrich, Haddow, Birch 2016, Neural machine translation of rare words with subword units,
///           section 3.2]
///
/// Errors    Unsupported for a character beyond ASCII; Argument for fewer than 256 tokens
[[nodiscard]] BytePairs merge_pairs(std::span<const WeightedText> texts, std::size_t tokens);

/// The tokens of a text whose words were all among those that the pairs were merged on.
[[nodiscard]] std::vector<std::int64_t> encode(const BytePairs& pairs, std::string_view text);

/// The bytes of a token as GPT-2's vocabulary spells them.
[[nodiscard]] std::string visible_text(std::string_view token);

/// Hugging Face's tokenizer.json; `reserved` are tokens after those of the text, which no text gives.
[[nodiscard]] std::string tokenizer_json(const BytePairs& pairs, std::span<const std::string> reserved);

}  // namespace normscope::lab
