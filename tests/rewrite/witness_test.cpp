// Witnesses of faults on tiny models, whose logits are those of transformers (tests/forward/decoder_test.cpp;
// tests/cli/compare_test.py confirms witnesses by a forward pass of its own).

#include <normscope/rewrite/witness.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/rewrite/compare.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "copy.hpp"
#include "support/files.hpp"
#include "support/fixtures.hpp"
#include "support/scratch.hpp"

namespace normscope::rewrite {
namespace {

using test::Copy;
using test::fixture;
using test::Scratch;

/// A fixture compared with a copy whose tensors, or whose configuration, are changed.
Comparison with_fault(const std::string& name, const std::function<void(Copy&)>& change,
                      const std::string& field = {}, const std::string& value = {}) {
  const Scratch scratch;
  const files::Checkpoint before(fixture(name));
  Copy copy(fixture(name));
  if (change) change(copy);
  if (!field.empty()) {
    const std::size_t at = copy.config.find('"' + field + '"');
    EXPECT_NE(at, std::string::npos) << field;
    const std::size_t from = copy.config.find(':', at) + 1;
    copy.config.replace(from, copy.config.find_first_of(",}\n", from) - from, " " + value);
  }
  const files::Checkpoint after = copy.open(scratch / "new");
  return compare(before, models::describe(before), after, models::describe(after));
}

void expect_witness(const Comparison& comparison, const std::string& what) {
  EXPECT_EQ(comparison.agreement, Agreement::different) << what;
  ASSERT_TRUE(comparison.witness) << what << ": " << comparison.no_witness;
  const Witness& witness = *comparison.witness;
  EXPECT_LT(witness.position, witness.tokens.size()) << what;
  EXPECT_GT(std::abs(witness.logit.after - witness.logit.before),
            witness.old_error + witness.new_error + witness.rounding)
      << what;
  EXPECT_LT(witness.old_error, 1e-9) << what;
  EXPECT_GT(witness.old_error, 0.0) << what;
}

TEST(Witness, IsFoundForEachFault) {
  const auto values = [](Copy& copy, const std::string& name) -> std::vector<double>& {
    return copy.tensors.at(name).values;
  };
  expect_witness(with_fault("llama",
                            [&](Copy& copy) {
                              for (double& gain : values(copy, "model.norm.weight")) gain += 1.0;
                            }),
                 "gain off by one");
  expect_witness(with_fault("llama",
                            [&](Copy& copy) {
                              std::vector<double>& out =
                                  values(copy, "model.layers.0.self_attn.o_proj.weight");
                              const std::size_t columns =
                                  copy.tensors.at("model.layers.0.self_attn.o_proj.weight").shape[1];
                              for (std::size_t i = 0; i < out.size(); ++i) {
                                if (i % columns < columns / 4) out[i] = 0.0;
                              }
                            }),
                 "a head of zeros");
  expect_witness(with_fault("mixtral",
                            [&](Copy& copy) {
                              const std::string experts = "model.layers.0.block_sparse_moe.experts.";
                              std::swap(values(copy, experts + "0.w2.weight"),
                                        values(copy, experts + "1.w2.weight"));
                            }),
                 "two experts exchanged in part");
  expect_witness(
      with_fault("bert",
                 [&](Copy& copy) {
                   for (double& gain : values(copy, "bert.encoder.layer.0.output.LayerNorm.weight")) {
                     gain += 1.0;
                   }
                 }),
      "an encoder's gain");
  expect_witness(with_fault("llama", {}, "rms_norm_eps", "1e-3"), "eps");
  expect_witness(with_fault("llama", {}, "rope_theta", "20000.0"), "theta");
  expect_witness(with_fault("gpt2", {}, "activation_function", "\"relu\""), "activation");
  expect_witness(with_fault("mixtral", {}, "num_experts_per_tok", "1"), "experts of a token");
}

// Another limit tells only where something reaches it.
TEST(Witness, AloneDecidesAboutTheLimitOfGates) {
  expect_witness(with_fault("gpt_oss", {}, "swiglu_limit", "0.001"), "a limit that is reached");
  const Comparison comparison = with_fault("gpt_oss", {}, "swiglu_limit", "1e6");
  EXPECT_EQ(comparison.agreement, Agreement::undecided);
  EXPECT_FALSE(comparison.witness);
}

// Random contexts miss the one token of many whose embedding differs.
TEST(Witness, UsesTokensWhoseEmbeddingsDiffer) {
  Copy copy(fixture("llama"));
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    Copy::Values& table = copy.tensors.at(name);
    const std::vector<double> rows = table.values;
    for (std::size_t i = 1; i < 100; ++i) table.values.insert(table.values.end(), rows.begin(), rows.end());
    table.shape[0] *= 100;
  }
  const Scratch scratch;
  const files::Checkpoint before = copy.open(scratch / "old");
  Copy::Values& table = copy.tensors.at("model.embed_tokens.weight");
  table.values[2001 * table.shape[1]] += 1.0;
  const files::Checkpoint after = copy.open(scratch / "new");
  const WitnessSearch search =
      seek_witness(before, models::describe(before), after, models::describe(after), {});
  ASSERT_TRUE(search.witness) << search.why_none;
  EXPECT_GT(search.contexts, 8U) << "random tokens suffice";
  const std::vector<std::size_t>& tokens = search.witness->tokens;
  EXPECT_NE(std::find(tokens.begin(), tokens.end(), 2001U), tokens.end());
}

TEST(Witness, IsNotFoundForEquivalentModels) {
  const Scratch scratch;
  for (const char* name : {"llama", "gpt2", "mixtral", "bert"}) {
    const files::Checkpoint file(fixture(name));
    const models::Model model = models::describe(file);
    const WitnessSearch same = seek_witness(file, model, file, model, {});
    EXPECT_FALSE(same.witness) << name;
    EXPECT_EQ(same.largest_gap, 0.0) << name;
    EXPECT_NE(same.why_none.find("no witness among"), std::string::npos) << same.why_none;
  }
}

// Neurons in another order compute the same, with other roundings.
TEST(Witness, IsNotFoundForRoundingsOfTheForwardPass) {
  const Scratch scratch;
  const files::Checkpoint before(fixture("gpt2"));
  Copy copy(fixture("gpt2"));
  auto& in = copy.tensors.at("transformer.h.0.mlp.c_fc.weight");
  auto& bias = copy.tensors.at("transformer.h.0.mlp.c_fc.bias");
  auto& out = copy.tensors.at("transformer.h.0.mlp.c_proj.weight");
  const std::size_t inner = in.shape[1], width = in.shape[0];
  for (std::size_t i = 0; i < width; ++i) std::swap(in.values[i * inner], in.values[i * inner + inner - 1]);
  std::swap(bias.values[0], bias.values[inner - 1]);
  for (std::size_t i = 0; i < width; ++i) std::swap(out.values[i], out.values[(inner - 1) * width + i]);
  const files::Checkpoint after = copy.open(scratch / "new");
  const WitnessSearch search =
      seek_witness(before, models::describe(before), after, models::describe(after), {});
  EXPECT_FALSE(search.witness);
  EXPECT_GT(search.largest_gap, 0.0);
  EXPECT_LT(search.largest_gap, 1e-13);
}

// Weights rounded to 16 bits and back are no witness where changes of that size count as rounding.
TEST(Witness, IsBeyondWhatRoundingOfWeightsExplains) {
  const Scratch scratch;
  const files::Checkpoint before(fixture("llama"));
  Copy copy(fixture("llama"));
  for (auto& [name, tensor] : copy.tensors) {
    for (double& value : tensor.values) value = std::nearbyint(value * 0x1p9) * 0x1p-9;
  }
  const files::Checkpoint after = copy.open(scratch / "new");
  const models::Model old_model = models::describe(before);
  const models::Model new_model = models::describe(after);
  EXPECT_TRUE(seek_witness(before, old_model, after, new_model, {}).witness);
  EXPECT_FALSE(seek_witness(before, old_model, after, new_model, {{"", 0x1p-6}}).witness);
  EXPECT_TRUE(seek_witness(before, old_model, after, new_model, {{"model.norm", 0x1p-16}}).witness)
      << "where others are equal";
}

TEST(Witness, TakesTheSameWorkEachTime) {
  const Scratch scratch;
  const files::Checkpoint before(fixture("gpt2"));
  Copy copy(fixture("gpt2"));
  copy.tensors.at("transformer.wte.weight").values[3] += 1e-7;
  const files::Checkpoint after = copy.open(scratch / "new");
  const models::Model old_model = models::describe(before), new_model = models::describe(after);
  const WitnessSearch one = seek_witness(before, old_model, after, new_model, {{"", 1.0}});
  const WitnessSearch two = seek_witness(before, old_model, after, new_model, {{"", 1.0}});
  EXPECT_EQ(one.contexts, 24U);
  EXPECT_EQ(one.contexts, two.contexts);
  EXPECT_EQ(one.largest_gap, two.largest_gap);
  EXPECT_EQ(one.why_none, two.why_none);
}

TEST(Witness, IsNotSoughtForModelsThatAreNotRun) {
  const files::Checkpoint file(fixture("t5"));
  const models::Model model = models::describe(file);
  const WitnessSearch search = seek_witness(file, model, file, model, {});
  EXPECT_EQ(search.why_none, "no witness was sought: not modelled: the forward pass of " + model.title);
  EXPECT_EQ(search.contexts, 0U);
}

}  // namespace
}  // namespace normscope::rewrite
