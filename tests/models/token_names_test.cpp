#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/models/token_names.hpp>

#include "support/scratch.hpp"

namespace normscope::models {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class TokenNames : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(scratch_ / name, std::ios::binary) << bytes;
    return scratch_ / name;
  }
  Names names(const std::string& name, const std::string& bytes, std::size_t tokens = 3) const {
    return read_token_names(write(name, bytes), tokens);
  }
  const fs::path& folder() const { return scratch_.folder(); }

 private:
  test::Scratch scratch_;
};

std::string number(std::int32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

TEST_F(TokenNames, EveryFormat) {
  const Names expected{"a", "", "<end>"};
  EXPECT_EQ(names("vocab.json", R"({"a": 0, "<end>": 2, "far": 99})"), expected);
  EXPECT_EQ(names("vocab.txt", "a\n\n<end>\nmore"), expected);
  EXPECT_EQ(names("crlf.txt", "a\r\n\r\n<end>"), expected);
  EXPECT_EQ(names("tokenizer.json",
                  R"({"version": "1.0", "added_tokens": [{"id": 2, "content": "<end>", "special": true}],
                      "model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["x", "y"], "z"]}})"),
            expected);
  // A token without a name does not get the name of the one before.
  EXPECT_EQ(
      names("tokenizer.json",
            R"({"added_tokens": [{"id": 2, "content": "<end>"}, {"id": 1}], "model": {"vocab": {"a": 0}}})"),
      expected);
  EXPECT_EQ(names("tokenizer.json",
                  R"({"model": {"type": "Unigram", "vocab": [["a", -1.5], ["", 0], ["<end>", -2]]}})"),
            expected);
  EXPECT_EQ(names("tokenizer.bin", number(5) + number(0) + number(1) + "a" + number(0) + number(0) +
                                       number(0) + number(5) + "<end>"),
            expected);
  EXPECT_EQ(names("short.txt", "a"), (Names{"a", "", ""}));
}

TEST_F(TokenNames, IsFoundBesideTheWeights) {
  EXPECT_FALSE(find_token_names(folder()));
  write("vocab.txt", "a");
  EXPECT_EQ(find_token_names(folder())->filename(), "vocab.txt");
  write("tokenizer.json", "{}");
  EXPECT_EQ(find_token_names(folder())->filename(), "tokenizer.json");
}

TEST_F(TokenNames, OfATokenizerThatLlama2cTrainedAreFoundByTheirNumber) {
  write("tok3.bin", number(5));
  EXPECT_EQ(find_token_names(folder(), 3)->filename(), "tok3.bin");
  EXPECT_FALSE(find_token_names(folder(), 4));
  EXPECT_FALSE(find_token_names(folder()));
}

TEST(TokenTexts, HaveSpacesWhereAVocabularyMarksThem) {
  EXPECT_EQ(token_texts({"Ġthe", "aĠĠb", "Ċ"}), (Names{" the", "a  b", "\n"}));
  EXPECT_EQ(token_texts({"Ġa", "Ā", "Ã", "Ã©", "Ń", "<｜end▁of｜>", "<a b>"}),
            (Names{" a", std::string(1, '\0'), "\xC3", "\u00e9", "\xAD", "<｜end▁of｜>", "<a b>"}))
      << "bytes, and added tokens as they are";
  EXPECT_EQ(token_texts({"▁the", "a"}), (Names{" the", "a"}));
  EXPECT_EQ(token_texts({"aĠ", "a▁"}), (Names{"aĠ", "a▁"})) << "letters, where no name begins with them";
}

TEST_F(TokenNames, HostileFilesAreRefused) {
  for (const char* text : {"", "{", "[]", "{}", "3", "{\"a\": {}}", "{\"model\": {\"vocab\": 3}}"}) {
    EXPECT_THROW(names("vocab.json", text), Error) << text;
  }
  EXPECT_NO_THROW(
      names("deep.json", "{\"a\": 1, \"b\": " + std::string(100000, '[') + std::string(100000, ']') + "}"));
  EXPECT_THROW(names("tokenizer.bin", number(5) + number(0)), Error);
  EXPECT_THROW(names("tokenizer.bin", number(5) + number(0) + number(-1)), Error);
  EXPECT_THROW(names("tokenizer.bin", number(5) + number(0) + number(1 << 30) + "a"), Error);
  EXPECT_THROW(names("vocab.model", "a"), Error);
  EXPECT_THROW(static_cast<void>(read_token_names(folder() / "none.txt", 3)), Error);
}

TEST_F(TokenNames, ScrambledFilesDoNoHarm) {
  Random random(1);
  const std::string good =
      R"({"added_tokens": [{"id": 2, "content": "x"}], "model": {"vocab": {"a": 0, "b": 1}, "m": [[["p", 1]]]}})";
  const std::string llama = number(5) + number(0) + number(1) + "a" + number(0) + number(2) + "bc";
  for (int round = 0; round < 300; ++round) {
    std::string bytes = round % 2 == 0 ? good : llama;
    for (int change = 0; change < 3; ++change) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    try {
      EXPECT_EQ(names(round % 2 == 0 ? "tokenizer.json" : "tokenizer.bin", bytes).size(), 3);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Format);
    }
  }
}

TEST(TokenNamesOfRealModels, AreRead) {
  const fs::path folder = fs::path(NORMSCOPE_DATA) / "checkpoints";
  if (!fs::exists(folder)) GTEST_SKIP() << "no " << folder;
  const Names llama = read_token_names(folder / "tok512.bin", 512);
  EXPECT_EQ(llama[1], "\n<s>\n");
  EXPECT_FALSE(llama[511].empty());
  const Names reactions = read_token_names(folder / "rxnmapper_albert/vocab.txt", 591);
  EXPECT_EQ(reactions[0], "[PAD]");
}

}  // namespace
}  // namespace normscope::models
