#include "tagging.hpp"

#include <cmath>
#include <string_view>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>

namespace normscope::lab::counting {
namespace {

constexpr Tagging taggings[] = {Tagging::near_balance, Tagging::prefix, Tagging::prefix_as_coded};

std::string tags(Tagging tagging, std::string_view word) {
  std::string text;
  for (const std::uint8_t label : labels(tagging, nets::rnn::word(word, 2))) text += label != 0 ? '1' : '0';
  return text;
}

TEST(Tagging, LabelsAreWhatTheyAreCalled) {
  EXPECT_EQ(tags(Tagging::near_balance, "aaaaaabbb"), "111100011");
  EXPECT_EQ(tags(Tagging::near_balance, "bbbbb"), "11110");
  EXPECT_EQ(tags(Tagging::prefix, "aabbab"), "000111");
  EXPECT_EQ(tags(Tagging::prefix, "aabbb"), "00011");
  EXPECT_EQ(tags(Tagging::prefix, "aabab"), "00000");
  EXPECT_EQ(tags(Tagging::prefix, "bab"), "000");
  // The label comes a letter late, and not at all where more b's come.
  EXPECT_EQ(tags(Tagging::prefix_as_coded, "aabbab"), "000011");
  EXPECT_EQ(tags(Tagging::prefix_as_coded, "aabbba"), "000000");
  EXPECT_EQ(tags(Tagging::prefix_as_coded, "ab"), "00");
}

TEST(Tagging, LabelsArePrefixesOfEveryWord) {
  const auto member = [](WordView word) {
    return !word.empty() && contains(nets::rnn::Language::anbn, word);
  };
  for (Word word; word.size() <= 10; nets::rnn::next_word(word, 2)) {
    const auto plain = labels(Tagging::prefix, word);
    const auto coded = labels(Tagging::prefix_as_coded, word);
    bool seen = false;
    bool seen_a = false;
    for (std::size_t t = 1; t <= word.size(); ++t) {
      seen_a = seen_a || (word[t - 1] == 0 && member(WordView(word).first(t - 1)));
      seen = seen || member(WordView(word).first(t));
      ASSERT_EQ(plain[t - 1] != 0, seen);
      ASSERT_EQ(coded[t - 1] != 0, seen_a);
    }
  }
}

TEST(Tagging, SharesAreThoseOfDraws) {
  for (const Tagging tagging : taggings) {
    for (const std::size_t length : {1U, 7U, 64U}) {
      Random random(5);
      double sum = 0.0;
      constexpr int words = 20000;
      for (int i = 0; i < words; ++i) {
        const auto tags = labels(tagging, draw(tagging, length, random));
        for (const std::uint8_t tag : tags) sum += tag;
      }
      // The labels of a word hang together: some 4 deviations of a share of `words`.
      EXPECT_NEAR(sum / (words * static_cast<double>(length)), positive_share(tagging, length), 0.015);
    }
  }
}

TEST(Tagging, AlwaysNoIsThePublishedBaseLine) {
  // Figure 6 has 37.52, 52.31, 64.17, 73.22, 79.73 and 84.73 % of a sample.
  const double published[] = {0.3752, 0.5231, 0.6417, 0.7322, 0.7973, 0.8473};
  std::size_t length = 64;
  for (const double share : published) {
    EXPECT_NEAR(1.0 - positive_share(Tagging::near_balance, length), share, 0.016);
    length *= 2;
  }
  // And of the prefix language it is the base line of the labels as coded.
  EXPECT_NEAR(1.0 - positive_share(Tagging::prefix_as_coded, 512), 0.8025, 0.01);
  EXPECT_NEAR(1.0 - positive_share(Tagging::prefix, 512), 0.585, 0.01);
  EXPECT_NEAR(majority(Tagging::near_balance, 64), 0.6224, 1e-4);
}

TEST(Tagging, HasNames) {
  for (const Tagging one : taggings) EXPECT_EQ(tagging(to_string(one)), one);
  EXPECT_THROW(static_cast<void>(tagging("dyck")), Error);
}

}  // namespace
}  // namespace normscope::lab::counting
