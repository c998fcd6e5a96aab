#include "text.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <normscope/core/error.hpp>
#include <normscope/forward/tokenizer.hpp>

#include "support/scratch.hpp"
#include "tiny.hpp"

namespace normscope::lab {
namespace {

TEST(BytePairs, MergeTheMostFrequentPairFirst) {
  const std::vector<WeightedText> texts = {{"aab aab aab ab", 1}};
  const BytePairs pairs = merge_pairs(texts, 300);
  EXPECT_EQ(std::vector(pairs.tokens.begin() + 256, pairs.tokens.end()),
            (std::vector<std::string>{"ab", "aab", " aab", " ab"}));
  EXPECT_EQ(encode(pairs, "aab ab"), (Tokens{257, 259}));
}

TEST(BytePairs, CountATextByItsWeight) {
  std::vector<WeightedText> texts = {{"aa aa aa", 1}, {"bb bb", 1}};
  EXPECT_EQ(merge_pairs(texts, 257).tokens.back(), "aa");
  texts[1].weight = 2;
  EXPECT_EQ(merge_pairs(texts, 257).tokens.back(), "bb");
  EXPECT_THROW((void)merge_pairs(texts, 255), Error);
}

TEST(BytePairs, SpellTextAsTheWrittenTokenizerDoes) {
  const std::vector<WeightedText> texts = {{test::tiny_text(), 1}, {"It's \"3 bees\"\n\n  there", 100}};
  const BytePairs pairs = merge_pairs(texts, 300);
  const normscope::test::Scratch scratch;
  test::write_file(scratch / "tokenizer.json",
                   tokenizer_json(pairs, std::vector<std::string>{"<|reserved_0|>"}));
  const forward::Tokenizer tokenizer(scratch / "tokenizer.json", pairs.tokens.size() + 1);
  EXPECT_EQ(tokenizer.names().back(), "<|reserved_0|>");
  for (const WeightedText& text : texts) {
    const std::vector<std::size_t> tokens = tokenizer.encode(text.text);
    EXPECT_EQ(encode(pairs, text.text), Tokens(tokens.begin(), tokens.end()));
  }
}

TEST(Text, HoldsOutOneBlockOfLinesInTwenty) {
  const normscope::test::Scratch scratch;
  test::write_file(scratch / "text", test::tiny_text());
  test::write_file(scratch / "licence", test::tiny_licence);
  const std::vector<std::filesystem::path> besides = {scratch / "licence"};
  const Text text = read_text(scratch / "text", besides, test::tiny_recipe());
  EXPECT_EQ(text.vocabulary(), 280U);
  std::size_t lines = 0;
  for (const std::int64_t token : text.held_out) {
    const std::string& piece = text.pairs.tokens.at(static_cast<std::size_t>(token));
    lines += static_cast<std::size_t>(std::count(piece.begin(), piece.end(), '\n'));
  }
  EXPECT_EQ(lines, 64U);
  EXPECT_EQ(text.training_bytes + text.held_out_bytes, test::tiny_text().size());
  EXPECT_NE(text.fingerprint, read_text(scratch / "text", {}, test::tiny_recipe()).fingerprint);
}

TEST(Text, RejectsATextWithoutHeldOutLines) {
  const normscope::test::Scratch scratch;
  test::write_file(scratch / "text", "one line\n");
  EXPECT_THROW((void)read_text(scratch / "text", {}, test::tiny_recipe()), Error);
  EXPECT_THROW((void)read_text(scratch / "none", {}, test::tiny_recipe()), Error);
}

}  // namespace
}  // namespace normscope::lab
