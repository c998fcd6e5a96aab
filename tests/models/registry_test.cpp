#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/models/model.hpp>

#include "architecture.hpp"
#include "models/synthetic.hpp"
#include "models/tiny_models.hpp"
#include "synthetic.hpp"

namespace normscope::models {

std::vector<const Architecture*> toy_architectures();

namespace {

using test::names;
using test::Synthetic;

TEST(Registry, HoldsOneArchitecturePerFileUnderTheFilesName) {
  std::set<std::string> files;
  const std::filesystem::path folder =
      std::filesystem::path(NORMSCOPE_SOURCE_DIR) / "src/models/architectures";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.insert(entry.path().stem());
  std::set<std::string> registered;
  for (const Architecture* architecture : all_architectures()) registered.emplace(architecture->name);
  EXPECT_EQ(registered, files);
  EXPECT_EQ(all_architectures().size(), files.size());
}

TEST(Registry, RecognisesAnArchitectureThatIsOneNewFile) {
  Synthetic toy;
  toy.add("net.table", {5, 4});
  for (const char* layer : {"net.toy.0.", "net.toy.1."}) {
    const std::string prefix = layer;
    toy.add(prefix + "ball.weight", {4}).linear(prefix + "in", 6, 4).linear(prefix + "out", 4, 6);
  }
  const Model model = describe_as_one_of(toy_architectures(), toy.open());
  EXPECT_EQ(model.architecture, "toy");
  EXPECT_EQ(model.evidence, "tensor names toy.*.ball.*");
  EXPECT_EQ(model.layers, 2);
  ASSERT_EQ(model.norms.size(), 2u);
  EXPECT_EQ(model.norms[1].kind, NormKind::spherical);
  EXPECT_EQ(model.norms[1].eps, 0.25);
  EXPECT_EQ(names(model.norms[0].writers), (std::vector<std::string>{"token embedding:net.table"}));
  EXPECT_EQ(names(model.norms[1].writers), (std::vector<std::string>{"mixer out:net.toy.0.out.weight"}));
  EXPECT_EQ(names(model.norms[1].readers), (std::vector<std::string>{"mixer in:net.toy.1.in.weight"}));
}

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
  EXPECT_EQ(refusal(file, {.architecture = "lama"}).substr(0, 62),
            "model: architecture \"lama\" is not known, expected one of afmoe");
  EXPECT_NE(refusal(file, {.architecture = "gpt2"}).find("expected for the stated architecture gpt2"),
            std::string::npos);
}

/// Output features 1 and 2 of five, of three inputs, in either layout.
Linear part(Layout layout) {
  return {.role = "query",
          .weight = {"w", 0, 15},
          .bias = Slice{"b", 0, 5},
          .layout = layout,
          .in = 3,
          .stored_out = 5,
          .first_out = 1,
          .out = 2};
}

files::Checkpoint stored(Layout layout) {
  Synthetic file;
  if (layout == Layout::out_in) {
    file.add("w", {5, 3});
  } else {
    file.add("w", {3, 5});
  }
  return file.add("b", {5}).open();
}

TEST(ReadLinear, ReadsEitherLayoutAsRowsOfOutputs) {
  for (const Layout layout : {Layout::out_in, Layout::in_out}) {
    const files::Checkpoint checkpoint = stored(layout);
    const std::vector<double> all = files::read(*checkpoint.find("w"));
    const auto at = [&](std::size_t out, std::size_t in) {
      return layout == Layout::out_in ? all[out * 3 + in] : all[in * 5 + out];
    };
    Linear linear = part(layout);
    EXPECT_EQ(read_weight(checkpoint, linear, 0, 2),
              (std::vector<double>{at(1, 0), at(1, 1), at(1, 2), at(2, 0), at(2, 1), at(2, 2)}));
    EXPECT_EQ(read_weight(checkpoint, linear, 1, 1), (std::vector<double>{at(2, 0), at(2, 1), at(2, 2)}));
    linear.out_indices = {4, 0};
    EXPECT_EQ(read_weight(checkpoint, linear, 0, 2),
              (std::vector<double>{at(4, 0), at(4, 1), at(4, 2), at(0, 0), at(0, 1), at(0, 2)}));
  }
}

TEST(ReadLinear, ReadsItsPartOfTheBias) {
  const files::Checkpoint checkpoint = stored(Layout::out_in);
  const std::vector<double> all = files::read(*checkpoint.find("b"));
  Linear linear = part(Layout::out_in);
  EXPECT_EQ(read_bias(checkpoint, linear), (std::vector<double>{all[1], all[2]}));
  linear.out_indices = {3, 5};
  EXPECT_THROW((void)read_bias(checkpoint, linear), Error);
  linear.bias.reset();
  EXPECT_TRUE(read_bias(checkpoint, linear).empty());
}

TEST(ReadLinear, RefusesWhatIsNotThere) {
  const files::Checkpoint checkpoint = stored(Layout::out_in);
  Linear linear = part(Layout::out_in);
  linear.first_out = 4;
  EXPECT_THROW((void)read_weight(checkpoint, linear, 0, 2), Error);
  linear.weight.tensor = "v";
  EXPECT_THROW((void)read_weight(checkpoint, linear, 0, 2), Error);
}

}  // namespace

}  // namespace normscope::models
