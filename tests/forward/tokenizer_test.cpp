#include <normscope/forward/tokenizer.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/models/token_names.hpp>

#include "support/data.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::forward {
namespace {

using Tokens = std::vector<std::size_t>;

class TokenizerFiles : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    test::put(scratch_ / name, text);
    return scratch_ / name;
  }

 private:
  test::Scratch scratch_;
};

// A vocabulary in which "low" is joined in the order of the merges, and Ġ stands for a space.
constexpr const char* small_vocabulary =
    R"({"l": 0, "o": 1, "w": 2, "Ġ": 3, "lo": 4, "low": 5, "Ġl": 6, "Ġlo": 7, "e": 8, "r": 9, "er": 10, "!": 11, "'s": 12, "Ċ": 13, "'": 14, "s": 15})";

TEST_F(TokenizerFiles, JoinsPairsInTheOrderOfTheMerges) {
  write("merges.txt", "#version: 0.2\nl o\nlo w\nĠ l\ne r\n' s\n");
  const Tokenizer tokenizer(write("vocab.json", small_vocabulary), 16);
  EXPECT_EQ(tokenizer.encode("low"), (Tokens{5}));
  EXPECT_EQ(tokenizer.encode(" low"), (Tokens{3, 5})) << "\"l o\" comes before \"Ġ l\"";
  EXPECT_EQ(tokenizer.encode("lower!"), (Tokens{5, 10, 11}));
  EXPECT_EQ(tokenizer.encode("low's  low\n"), (Tokens{5, 12, 3, 3, 5, 13}));
  EXPECT_EQ(tokenizer.encode(""), Tokens{});
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { (void)tokenizer.encode("lox"); }),
            "the text has \"x\", which is not in the vocabulary");
  EXPECT_EQ(test::error_of(ErrorCode::Unsupported, [&] { (void)tokenizer.encode("low\xC3\xA9"); }),
            "the text has a character beyond ASCII at byte 3, which this tokenizer cannot split into words; "
            "give tokens instead");
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { (void)tokenizer.encode(std::string(65537, 'l')); }),
            "the text has 65537 bytes, expected at most 65536");
}

TEST_F(TokenizerFiles, FindsTokensByTheirTextAndByTheirSpelling) {
  write("merges.txt", "#version: 0.2\nl o\nlo w\n");
  const Tokenizer tokenizer(write("vocab.json", small_vocabulary), 16);
  const std::vector<std::string> texts = models::token_texts(tokenizer.names());
  EXPECT_EQ(texts[7], " lo");
  for (const char* name : {"7", " lo", "\u0120lo"}) EXPECT_EQ(find_token(name, texts, nullptr), 7U) << name;
  EXPECT_EQ(find_token("low", {}, &tokenizer), 5U);
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { (void)find_token("lox", texts, nullptr); }),
            "token: \"lox\" is not in the vocabulary, expected an id or a name");
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { (void)find_token("lo", {" lo"}, nullptr); }),
            "token: \"lo\" is not in the vocabulary, which has \" lo\", the beginning of a word");
  EXPECT_EQ(
      test::error_of(ErrorCode::Argument, [&] { (void)find_token("lowlow", texts, &tokenizer); }),
      "token: \"lowlow\" is not in the vocabulary, which spells it with 2 tokens; expected one, as an id "
      "or a name");
}

std::string tokenizer_json(const std::string& merges, const std::string& more = "") {
  return R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "normalizer": null, )" +
         more + R"("model": {"type": "BPE", "vocab": )" + small_vocabulary + R"(, "merges": )" + merges +
         "}}";
}

TEST_F(TokenizerFiles, ReadsBothSpellingsOfMerges) {
  for (const char* merges : {R"(["l o", "lo w"])", R"([["l", "o"], ["lo", "w"]])"}) {
    const Tokenizer tokenizer(write("tokenizer.json", tokenizer_json(merges)), 16);
    EXPECT_EQ(tokenizer.encode("low low"), (Tokens{5, 3, 5}));
  }
}

TEST_F(TokenizerFiles, RefusesOtherTokenizersAndBrokenFiles) {
  const auto refused = [&](ErrorCode code, const std::string& name, const std::string& text) {
    const std::filesystem::path file = write(name, text);
    const std::string message = test::error_of(code, [&] { const Tokenizer tokenizer(file, 16); });
    EXPECT_TRUE(message.starts_with(file.string())) << message;
    return message.substr(std::min(message.size(), file.string().size()));
  };
  const std::string expected = ", expected byte-level BPE as GPT-2 has it; give tokens instead";
  EXPECT_EQ(refused(ErrorCode::Unsupported, "tokenizer.json",
                    R"({"model": {"type": "Unigram", "vocab": {"a": 0}}})"),
            ": its model is not BPE" + expected);
  EXPECT_EQ(refused(ErrorCode::Unsupported, "tokenizer.json",
                    tokenizer_json("[]", R"("post_processor": {"type": "TemplateProcessing"}, )")),
            ": it adds tokens to the text" + expected);
  EXPECT_EQ(
      refused(ErrorCode::Unsupported, "tokenizer.json",
              R"({"model": {"type": "BPE", "vocab": {"a": 0}}, "pre_tokenizer": {"type": "Sequence"}})"),
      ": it splits text in another way" + expected);
  EXPECT_EQ(refused(ErrorCode::Format, "tokenizer.json", tokenizer_json(R"([["l"]])")),
            ": has a merge that is no pair of tokens");
  EXPECT_EQ(refused(ErrorCode::Format, "tokenizer.json", tokenizer_json("7")), ": has no list of merges");
  EXPECT_EQ(refused(ErrorCode::Unsupported, "vocab.json", R"({"ab": 0})"),
            ": merges.txt is not beside it" + expected);
  EXPECT_EQ(refused(ErrorCode::Unsupported, "vocab.txt", "a\nb\n"),
            ": it has names of tokens alone" + expected);
}

TEST_F(TokenizerFiles, TakesCharactersWhereAllNamesAreOne) {
  const Tokenizer tokenizer(write("vocab.json", R"({"a": 0, "\n": 1, "é": 2})"), 3);
  EXPECT_EQ(tokenizer.encode("\na\xC3\xA9"), (Tokens{1, 0, 2}));
}

// The tokens are those of llama2.c's run.c for this tokenizer.
TEST(Tokenizer, JoinsTheBestPairsOfLlama2c) {
  NORMSCOPE_NEED_DATA(file, "checkpoints/tok512.bin");
  const Tokenizer tokenizer(file, 512);
  const Tokens tokens = tokenizer.encode("Once upon a time");
  EXPECT_EQ(tokens.front(), 1U);
  std::string text;
  for (std::size_t i = 1; i < tokens.size(); ++i) text += tokenizer.names()[tokens[i]];
  EXPECT_EQ(text, " Once upon a time");
  EXPECT_EQ(tokenizer.encode("Once upon a time"), (Tokens{1, 403, 407, 261, 378}));
  EXPECT_EQ(tokenizer.encode(""), Tokens{1});
  const Tokens unknown = tokenizer.encode("\xE2\x98\x83");
  EXPECT_EQ(std::vector<std::size_t>(unknown.end() - 3, unknown.end()),
            (Tokens{3 + 0xE2, 3 + 0x98, 3 + 0x83}));
}

}  // namespace
}  // namespace normscope::forward
