#include <normscope/nets/rnn/language.hpp>

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

namespace normscope::nets::rnn {

std::string_view to_string(Language language) { return language == Language::anbn ? "anbn" : "anbncn"; }

Language language(std::string_view name) {
  for (const Language value : {Language::anbn, Language::anbncn}) {
    if (to_string(value) == name) return value;
  }
  throw Error(ErrorCode::Argument, fmt::format("unknown language \"{}\", expected anbn or anbncn", name));
}

std::size_t letters(Language language) { return language == Language::anbn ? 2 : 3; }

bool contains(Language language, WordView word) {
  const std::size_t count = letters(language);
  const std::size_t n = word.size() / count;
  if (n * count != word.size()) return false;
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (word[at] != at / n) return false;
  }
  return true;
}

bool begins_with_member(WordView word) {
  std::size_t n = 0;
  while (n < word.size() && word[n] == 0) ++n;
  return n > 0 && 2 * n <= word.size() && contains(Language::anbn, word.first(2 * n));
}

Word blocks(std::span<const std::size_t> counts) {
  Word word;
  for (std::size_t letter = 0; letter < counts.size(); ++letter) {
    word.insert(word.end(), counts[letter], static_cast<std::uint8_t>(letter));
  }
  return word;
}

Word member(Language language, std::size_t n) {
  const std::array<std::size_t, 3> counts{n, n, n};
  return blocks(std::span(counts).first(letters(language)));
}

Word word(std::string_view text, std::size_t letters) {
  Word word;
  for (const char letter : text) {
    const int number = letter - 'a';
    if (number < 0 || number >= static_cast<int>(letters)) {
      throw Error(ErrorCode::Argument,
                  fmt::format("word \"{}\" has a letter that is not among the first {}", text, letters));
    }
    word.push_back(static_cast<std::uint8_t>(number));
  }
  return word;
}

std::string text(WordView word) {
  std::string text;
  for (const std::uint8_t letter : word) text.push_back(static_cast<char>('a' + letter));
  return text;
}

void next_word(Word& word, std::size_t letters) {
  for (std::size_t at = word.size(); at-- > 0;) {
    NORMSCOPE_ASSERT(word[at] < letters);
    if (++word[at] < letters) return;
    word[at] = 0;
  }
  word.push_back(0);
}

std::vector<Labelled> near_members(Language language, std::size_t count, std::size_t most,
                                   std::uint64_t seed) {
  Random random(seed);
  std::vector<Labelled> words;
  std::array<std::size_t, 3> counts{};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t n = random.below(most + 1);
    for (std::size_t letter = 0; letter < letters(language); ++letter) {
      const std::size_t above = n + random.below(5);
      counts[letter] = above - std::min<std::size_t>(above, 2);
    }
    Word drawn = blocks(std::span(counts).first(letters(language)));
    const bool belongs = contains(language, drawn);
    words.push_back({std::move(drawn), belongs});
  }
  return words;
}

}  // namespace normscope::nets::rnn
