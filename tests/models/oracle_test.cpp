#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "models/oracle.hpp"
#include "models/oracle_norms.hpp"
#include "models/synthetic.hpp"
#include "support/fixtures.hpp"

namespace normscope::models {

// Compares descriptions of tiny models with what running them showed (scripts/model_oracle/README.md).
namespace {

// Cases whose description is not yet right. An entry that has become right fails the test: remove it.
const std::set<std::string> not_described = {};

class Oracle : public testing::TestWithParam<std::string> {};

TEST_P(Oracle, DescribesWhatRunningTheModelShows) {
  const std::vector<std::string> differences = test::oracle_differences(GetParam());
  if (not_described.contains(GetParam())) {
    EXPECT_FALSE(differences.empty()) << GetParam() << " is described: remove it from not_described";
  } else {
    EXPECT_TRUE(differences.empty()) << fmt::format("{}", fmt::join(differences, "\n"));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Oracle, testing::ValuesIn(test::fixtures_with("truth.json")),
                         [](const auto& instance) { return instance.param; });

// The files of torch.nn's stacks do not show norm_first and the number of heads; a configuration may.
TEST(OracleOfTorchModules, AreDescribedByWhatAConfigurationStates) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"torch_encoder", R"({"nhead": 3, "norm_first": false, "layer_norm_eps": 3e-4})"},
      {"torch_decoder", R"({"nhead": 3, "norm_first": false})"},
      {"torch_decoder_norm_first", R"({"nhead": 3, "norm_first": true})"},
      {"torch_transformer", R"({"nhead": 3, "norm_first": false, "num_encoder_layers": 2})"}};
  for (const auto& [name, config] : cases) {
    EXPECT_EQ(test::oracle_differences(name, config), std::vector<std::string>{}) << name;
  }
  const std::vector<std::string> wrong =
      test::oracle_differences("torch_decoder", R"({"nhead": 3, "norm_first": true})");
  EXPECT_FALSE(wrong.empty()) << "norm_first was not read";
}

TEST(OracleList, NamesOnlyCasesThatExist) {
  const std::vector<std::string> cases = test::fixtures_with("truth.json");
  for (const std::string& name : not_described) {
    EXPECT_EQ(std::count(cases.begin(), cases.end(), name), 1) << name;
  }
}

// Files of libraries that store no configuration: what their tensors show, and what cannot be known.

// A model of two heads in the names of TransformerLens. `mask`: whether it stores its causal mask, of one
// position.
test::Synthetic lens(bool mask) {
  test::Synthetic file;
  const std::string at = "blocks.0.";
  for (const char* name : {"W_Q", "W_K", "W_V"}) file.add(at + "attn." + name, {2, 6, 4});
  for (const char* name : {"b_Q", "b_K", "b_V"}) file.add(at + "attn." + name, {2, 4});
  file.add(at + "attn.W_O", {2, 4, 6}).add(at + "attn.b_O", {6});
  file.add(at + "mlp.W_in", {6, 8}).add(at + "mlp.b_in", {8});
  file.add(at + "mlp.W_out", {8, 6}).add(at + "mlp.b_out", {6});
  for (const char* norm : {"blocks.0.ln1", "blocks.0.ln2", "ln_final"}) {
    file.add(std::string(norm) + ".w", {6}).add(std::string(norm) + ".b", {6});
  }
  file.add("embed.W_E", {11, 6}).add("pos_embed.W_pos", {5, 6}).add("unembed.W_U", {6, 11});
  if (mask) file.add(at + "attn.mask", {1, 1}, Dtype::BOOL);
  return file;
}

TEST(TransformerLens, HasABiasForEveryHead) {
  const test::Synthetic file = lens(true);
  const Model model = file.describe();
  ASSERT_EQ(model.heads.size(), 2u);
  ASSERT_TRUE(model.heads[1].key && model.heads[1].key->bias);
  EXPECT_EQ(model.heads[1].key->weight.selector(), "blocks.0.attn.W_K[1]");
  EXPECT_EQ(model.heads[1].key->bias->selector(), "blocks.0.attn.b_K[1]");
  EXPECT_EQ(model.heads[1].head_dim, 4u);
}

TEST(TransformerLens, PromisesNothingOfScoresWithoutAMask) {
  EXPECT_NE(lens(false).describe().heads.at(0).not_modelled, "");
}

TEST(XTransformers, OneNumberIsTheGainOfEveryFeature) {
  const files::Checkpoint file(test::fixture("lucidrains_gpt_scale"));
  const Model model = describe(file);
  const NormSpec spec = read_norm(file, model.norms.at(0));
  ASSERT_EQ(spec.gain.size(), 12u);
  EXPECT_EQ(spec.gain, std::vector<double>(12, spec.gain[0]));
}

TEST(TorchEncoder, IsNotTakenForADetector) {
  // Its queries and keys have positions added, which the same names of the stack do not show.
  const files::Checkpoint file(test::fixture("torch_encoder"));
  EXPECT_EQ(describe(file).architecture, "torch_encoder");
  test::Synthetic detector;
  detector.add("query_embed.weight", {3, 6});
  for (const char* name : {"self_attn.in_proj_weight", "linear1.weight", "norm1.weight"}) {
    detector.add(std::string("transformer.encoder.layers.0.") + name, {6, 6});
  }
  EXPECT_EQ(detector.describe().architecture, "unknown");
}

}  // namespace

}  // namespace normscope::models
