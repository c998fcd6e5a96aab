#include <normscope/nets/rnn/language.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

namespace normscope::nets::rnn {
namespace {

TEST(Language, HoldsItsMembersAndNothingElse) {
  for (const Language language : {Language::anbn, Language::anbncn}) {
    std::set<Word> members;
    for (std::size_t n = 0; n <= 4; ++n) members.insert(member(language, n));
    for (Word word; word.size() <= 9; next_word(word, letters(language))) {
      EXPECT_EQ(contains(language, word), members.contains(word)) << text(word);
    }
  }
}

TEST(Language, WordsComeInOrderOfLength) {
  std::vector<std::string> words;
  for (Word word; word.size() <= 2; next_word(word, 2)) words.push_back(text(word));
  EXPECT_EQ(words, (std::vector<std::string>{"", "a", "b", "aa", "ab", "ba", "bb"}));
}

TEST(Language, TextRoundTrips) {
  EXPECT_EQ(text(word("abcab", 3)), "abcab");
  EXPECT_THROW(static_cast<void>(word("abc", 2)), Error);
  EXPECT_THROW(static_cast<void>(word("A", 2)), Error);
  EXPECT_EQ(language("anbncn"), Language::anbncn);
  EXPECT_THROW(static_cast<void>(language("dyck")), Error);
}

TEST(Language, NearMembersAreAFifthMembers) {
  for (const auto& [language, share] : {std::pair{Language::anbn, 0.2}, std::pair{Language::anbncn, 0.04}}) {
    const auto words = near_members(language, 20000, 200, 3);
    const auto members =
        std::count_if(words.begin(), words.end(), [](const Labelled& one) { return one.member; });
    // Three deviations; an exponent below 0 is 0, which adds a few members.
    EXPECT_NEAR(static_cast<double>(members) / 20000.0, share, 3.0 * std::sqrt(share / 20000.0) + 0.003);
    EXPECT_EQ(words[7].word, near_members(language, 20000, 200, 3)[7].word);
  }
}

}  // namespace
}  // namespace normscope::nets::rnn
