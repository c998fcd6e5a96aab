#include "words.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <normscope/core/error.hpp>

#include "support/scratch.hpp"

namespace normscope::lab {
namespace {

constexpr const char* tiny_words =
    "apple\nbanana\ncherry\nDate\nelderberry\nfig\ngooseberry\ngrape\nhoneydew\nkiwi\n"
    "lemon\nmango\nnectarine\norange\npapaya\nquince\nraspberry\nsatsuma\ntangerine\n"
    "ugli\nvanilla\nwalnut\nwatermelon\nxigua\nyuzu\nzucchini\n"
    "apple's\nbanana's\ncaf\xc3\xa9\nfig\ngrape's\nwalnut's\n";

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

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

}  // namespace
}  // namespace normscope::lab
