#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/text.hpp>

namespace {

using normscope::nearest_name;

std::string_view of(std::string_view wanted, const std::vector<std::string_view>& names) {
  return nearest_name(wanted, names);
}

TEST(Nearest, TypingErrorsAreFound) {
  const std::vector<std::string_view> commands{"report", "inspect", "rewrite", "reach", "run"};
  EXPECT_EQ(of("reprot", commands), "report");    // two characters swapped
  EXPECT_EQ(of("repport", commands), "report");   // one too many
  EXPECT_EQ(of("rewrit", commands), "rewrite");   // one missing
  EXPECT_EQ(of("inspecd", commands), "inspect");  // another one
  EXPECT_EQ(of("REACH", commands), "reach");
  EXPECT_EQ(of("rnu", commands), "run");
  EXPECT_EQ(of("rep", commands), "report");
}

TEST(Nearest, NothingIsSuggestedForAnythingElse) {
  EXPECT_EQ(of("fold", {"report", "heads"}), "");
  EXPECT_EQ(of("xy", {"ab", "xylophone"}), "");
  EXPECT_EQ(of("", {"a"}), "");
  EXPECT_EQ(of("a", {}), "");
  EXPECT_EQ(of("weight", {"transformer.h.0.ln_1.weight"}), "") << "the end of every name";
}

TEST(Nearest, NamesWithAnotherPrefixAreFound) {
  const std::vector<std::string_view> names{"transformer.h.0.ln_1.weight", "transformer.h.1.ln_1.weight"};
  EXPECT_EQ(of("h.1.ln_1.weight", names), names[1]);
  EXPECT_EQ(of("model.transformer.h.1.ln_1.weight", names), names[1]);
  EXPECT_EQ(of("transformer.h.1.ln_1.wieght", names), names[1]);
}

TEST(Nearest, TheFewestChangesWinAndOfTheseTheFirst) {
  EXPECT_EQ(of("abcd", {"abxx", "abcx", "abcy"}), "abcx");
  EXPECT_EQ(of("abcd", {"abcdefgh", "abce"}), "abce");
  EXPECT_EQ(of("ab", {"ba", "ab"}), "ab");
}

TEST(Nearest, LongNamesCostNothing) {
  const std::string long_name(1 << 20, 'a');
  EXPECT_EQ(of(long_name, {long_name}), "");
  EXPECT_EQ(of("aaaa", {long_name, "aaab"}), "aaab");
}

}  // namespace
