#include "words.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <normscope/core/error.hpp>

#include "support/scratch.hpp"
#include "tiny.hpp"

namespace normscope::lab {
namespace {

using test::tiny_words;
using test::write_file;

WordLists tiny_lists() {
  const normscope::test::Scratch scratch;
  write_file(scratch / "words", tiny_words);
  return read_words(scratch / "words", 11);
}

std::string message(const std::string& text) {
  const normscope::test::Scratch scratch;
  write_file(scratch / "words", text);
  try {
    static_cast<void>(read_words(scratch / "words", 11));
  } catch (const Error& error) {
    return std::string(error.what()).substr(("words: " + (scratch / "words").string()).size());
  }
  return "accepted";
}

TEST(Words, AreLowerCasedSortedAndUnique) {
  const WordLists lists = tiny_lists();
  std::vector<std::string> all = lists.training;
  all.insert(all.end(), lists.validation.begin(), lists.validation.end());
  EXPECT_EQ(all.size(), 30U);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  EXPECT_TRUE(std::is_sorted(lists.training.begin(), lists.training.end()));
  EXPECT_NE(std::find(all.begin(), all.end(), "date"), all.end());
  EXPECT_EQ(lists.dropped, 1U);
}

TEST(Words, KeepAWordAndItsPossessiveTogether) {
  const WordLists lists = tiny_lists();
  for (const auto* list : {&lists.training, &lists.validation}) {
    for (const char* word : {"apple", "banana", "grape", "walnut"}) {
      EXPECT_EQ(std::count(list->begin(), list->end(), word),
                std::count(list->begin(), list->end(), word + std::string("'s")));
    }
  }
}

TEST(Words, RejectListsThatCannotBeUsed) {
  EXPECT_EQ(message("caf\xc3\xa9\n"), ": 0 words to train on and 0 to validate with, expected some of both");
  EXPECT_EQ(message("incomprehensible"),
            ": a word of 16 letters, expected at most 11 in the recipe's context");
  EXPECT_THROW(static_cast<void>(read_words("/no/such/list", 11)), Error);
}

TEST(Batches, OneWordARowEndsAtItsNewline) {
  const std::vector<std::string> words = {"ab", "c"};
  const Batch batch = one_word_a_row(words);
  EXPECT_EQ(batch.length, 3U);
  EXPECT_EQ(batch.inputs, (std::vector<std::int64_t>{0, 2, 3, 0, 4, 0}));
  EXPECT_EQ(batch.targets, (std::vector<std::int64_t>{2, 3, 0, 4, 0, uncounted}));
}

TEST(Batches, TrainingRowsShowEveryWordWholeInEachPass) {
  const std::vector<std::string> words = {"alpha", "beta", "gamma", "delta", "pi"};
  TrainingRows rows(words, 9, 3);
  const Batch batch = rows.next(40);
  std::multiset<std::string> whole;
  for (std::size_t row = 0; row < batch.rows; ++row) {
    std::string text;
    for (std::size_t i = 0; i < 9; ++i) {
      const std::int64_t before = i == 0 ? separator : batch.targets[row * 9 + i - 1];
      EXPECT_EQ(batch.inputs[row * 9 + i], before);
      text += alphabet[static_cast<std::size_t>(batch.targets[row * 9 + i])];
    }
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      whole.insert(text.substr(0, end));
      text.erase(0, end + 1);
    }
  }
  const std::size_t passes = whole.size() / words.size();
  EXPECT_GE(passes, 8U);
  for (const std::string& word : words) {
    EXPECT_GE(whole.count(word), passes);
    EXPECT_LE(whole.count(word), passes + 1);
  }
}

}  // namespace
}  // namespace normscope::lab
