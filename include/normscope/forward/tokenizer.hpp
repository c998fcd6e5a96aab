#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
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

/// Longest text that is encoded, in bytes.
inline constexpr std::size_t longest_text = std::size_t{1} << 16;

/// Turns text into tokens, with one of these files:
///   *.bin           llama2.c: pairs with the best score are joined; a first token 1, and a space before the
///                   text
///   vocab.json      with merges.txt beside it, GPT-2's byte-level BPE; without, a token for each character
///   tokenizer.json  byte-level BPE as GPT-2 has it, without a normalizer and further steps
/// GPT-2's rule for splitting text needs the Unicode classes of characters; of text that it splits, only
/// ASCII is supported.
class Tokenizer {
 public:
  /// Reads a vocabulary of `tokens` tokens.
  ///
  /// Errors    Io; Format, naming the file; Unsupported for a tokenizer of another kind
  Tokenizer(const std::filesystem::path& file, std::size_t tokens);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Names of the tokens, as the file spells them.
  [[nodiscard]] const std::vector<std::string>& names() const;

  /// Errors    Argument for text that is longer than `longest_text` or that the vocabulary cannot spell;
  ///           Unsupported for characters beyond ASCII, where they would have to be split
  ///
  /// Accuracy  the tokens of the published encoders (tests: Tokenizer.JoinsTheBestPairsOfLlama2c,
  ///           TokenizerFiles.JoinsPairsInTheOrderOfTheMerges)
  ///
  /// Cost      O(length²) for llama2.c, O(length · longest word) for BPE
  [[nodiscard]] std::vector<std::size_t> encode(std::string_view text) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

/// The token that a text means: its id, its name (as `names` or, where these are text, as the file spells
/// it), or the only token that `tokenizer` encodes it as.
///
/// Errors    Argument if there is none
[[nodiscard]] std::size_t find_token(const std::string& text, const std::vector<std::string>& names,
                                     const Tokenizer* tokenizer);

}  // namespace normscope::forward
