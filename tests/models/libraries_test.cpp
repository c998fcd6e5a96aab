// Files of libraries that store no configuration: what their tensors show, and what cannot be known.

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/oracle_norms.hpp"
#include "models/synthetic.hpp"
#include "support/fixtures.hpp"

namespace normscope::models {
namespace {

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
