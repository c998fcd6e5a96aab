#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Words, and languages that distinguish counters from finite memory.
namespace normscope::nets::rnn {

/// Letters by number: 0 is a, 1 is b, 2 is c.
using Word = std::vector<std::uint8_t>;
using WordView = std::span<const std::uint8_t>;

/// a^n b^n and a^n b^n c^n, n >= 0: the empty word is in both.
///
/// Source    [Weiss, Goldberg, Yahav 2018]
enum class Language : std::uint8_t { anbn, anbncn };

[[nodiscard]] std::string_view to_string(Language language);
/// The language of that name, "anbn" or "anbncn".
///
/// Errors    Argument if there is none
[[nodiscard]] Language language(std::string_view name);
/// Letters of its alphabet: two or three.
[[nodiscard]] std::size_t letters(Language language);
[[nodiscard]] bool contains(Language language, WordView word);
/// a^n b^n Σ*, n > 0: whether the word begins with a member of a^n b^n that is not empty.
///
/// Source    [Merrill et al. 2020, section 4.3]
[[nodiscard]] bool begins_with_member(WordView word);

/// a^{counts[0]} b^{counts[1]} …; the word of a language with n of every letter.
[[nodiscard]] Word blocks(std::span<const std::size_t> counts);
[[nodiscard]] Word member(Language language, std::size_t n);

/// "aab" as 0, 0, 1 and back.
///
/// Errors    Argument for a letter beyond the first `letters`
[[nodiscard]] Word word(std::string_view text, std::size_t letters);
[[nodiscard]] std::string text(WordView word);

/// Iterates over the words of `letters` letters in order of length.
///
/// Requires  every letter below `letters`
void next_word(Word& word, std::size_t letters);

/// A word and whether it is in the language.
struct Labelled {
  Word word;
  bool member = false;
};

/// a^{n+i} b^{n+j} (c^{n+k}) with n uniform in 0..most and i, j, k in −2..2, a negative exponent counting as
/// 0. A fifth of the words over two letters are members, a 25th over three. Always answering no is right for
/// the others, so consider the two rates separately.
///
/// Source    [Weiss, Goldberg, Yahav 2018], where `most` is 200 and 150
[[nodiscard]] std::vector<Labelled> near_members(Language language, std::size_t count, std::size_t most,
                                                 std::uint64_t seed);

}  // namespace normscope::nets::rnn
