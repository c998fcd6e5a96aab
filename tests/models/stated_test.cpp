#include <string>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "models/tiny_models.hpp"

namespace normscope::models {
namespace {

std::string refusal(const test::Synthetic& file, const Stated& stated) {
  try {
    static_cast<void>(describe(file.open(), stated));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Argument);
    return error.what();
  }
  return "none";
}

TEST(Stated, HeadsStandForAnAbsentConfiguration) {
  const test::Synthetic file = test::tiny_llama({.heads = 4, .key_value_heads = 4, .head_dim = 8});
  EXPECT_TRUE(describe(file.open()).heads.empty());
  const Model model = describe(file.open(), {.heads = 4});
  EXPECT_EQ(model.heads.size(), 4u);
  EXPECT_EQ(model.heads.front().head_dim, 8u);
}

TEST(Stated, HeadsThatContradictTheConfigurationAreRefused) {
  test::Synthetic file = test::tiny_llama({.heads = 4, .key_value_heads = 4, .head_dim = 8});
  file.config(R"({"model_type": "llama", "num_attention_heads": 4})");
  EXPECT_EQ(describe(file.open(), {.heads = 4}).heads.size(), 4u);
  EXPECT_EQ(refusal(file, {.heads = 2}),
            "model: config.json: \"num_attention_heads\" is 4, but 2 heads are stated");
  // A multimodal model's text part is stated in a section of its own.
  file.config(
      R"({"num_attention_heads": 2, "text_config": {"model_type": "llama", "num_attention_heads": 4}})");
  EXPECT_EQ(refusal(file, {.heads = 2}),
            "model: config.json: \"num_attention_heads\" is 4, but 2 heads are stated");
}

TEST(Stated, HeadsWithoutAttentionAreNotedAsUnused) {
  test::Synthetic file;
  file.norm("somewhere.norm", 8);
  const Model model = describe(file.open(), {.heads = 3});
  ASSERT_FALSE(model.notes.empty());
  EXPECT_EQ(model.notes.back(),
            "the stated 3 heads are not used: unknown architecture describes no attention");
}

TEST(Stated, TheArchitectureDecidesOverAModelTypeThatIsNotKnown) {
  test::Synthetic file = test::tiny_llama({.heads = 4, .key_value_heads = 4, .head_dim = 8});
  file.config(R"({"model_type": "in_house", "num_attention_heads": 4})");
  EXPECT_TRUE(describe(file.open()).heads.empty());
  const Model model = describe(file.open(), {.architecture = "llama"});
  EXPECT_EQ(model.evidence, "stated: llama");
  EXPECT_EQ(model.heads.front().not_modelled, "");
  // Fields of the configuration count as before.
  file.config(R"({"model_type": "in_house", "num_attention_heads": 4, "surprise": 2})");
  EXPECT_EQ(describe(file.open(), {.architecture = "llama"}).heads.front().not_modelled, "surprise: 2");
}

TEST(Stated, AnArchitectureThatCannotBeIsRefused) {
  const test::Synthetic file = test::tiny_llama();
  EXPECT_EQ(refusal(file, {.architecture = "lama"}).substr(0, 63),
            "model: architecture \"lama\" is not known, expected one of albert");
  EXPECT_NE(refusal(file, {.architecture = "gpt2"}).find("expected for the stated architecture gpt2"),
            std::string::npos);
}

}  // namespace
}  // namespace normscope::models
