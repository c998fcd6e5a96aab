#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "rewrite/copy.hpp"
#include "rewrite/stored_parts.hpp"
#include "support/files.hpp"

namespace normscope::rewrite {
namespace {

using models::Model;
using models::Norm;
using test::Copy;
using test::error_of;
using test::fixture;
using test::parts_of;
using test::Scratch;

using Describes = std::function<void(Model& model)>;

const Options folds{.fold_gains = true};
const Options migrates{.migrate = true};
const Options centers{.center = true};
const Options rotates{.rotation = RotationRequest{1, nullptr}};

testing::AssertionResult says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not say \"" << part << "\"";
}

/// The plan for a model that is described in another way than its file suggests.
Plan planned(const files::Checkpoint& source, const Options& options, const Describes& change = {}) {
  Model model = models::describe(source);
  if (change) change(model);
  return make_plan(source, model, options);
}

Plan planned(const std::string& name, const Options& options, const Describes& change = {}) {
  return planned(files::Checkpoint(fixture(name)), options, change);
}

/// Why the first norm keeps its gain.
std::string left(const std::string& name, const Describes& change) {
  const Plan plan = planned(name, folds, change);
  EXPECT_EQ(plan.norms.at(0).fold, Fold::nothing);
  return plan.norms.at(0).reason;
}

/// Why the first stream keeps its mean.
std::string not_centered(const Describes& change) {
  const Plan plan = planned("gpt_neox", centers, change);
  EXPECT_FALSE(plan.streams.at(0).centered);
  return plan.streams.at(0).reason;
}

/// Why the first stream of a model whose gains are folded is not rotated.
std::string not_rotated(const std::string& name, const Describes& change) {
  const Plan plan = planned(name, {.fold_gains = true, .rotation = RotationRequest{1, nullptr}}, change);
  EXPECT_FALSE(plan.rotations.at(0).rotation);
  return plan.rotations.at(0).reason;
}

/// The fixture with one tensor stored in 8 bits.
files::Checkpoint with_8_bits(const std::string& name, const std::string& tensor,
                              const std::filesystem::path& folder) {
  auto parts = parts_of(files::Checkpoint(fixture(name)));
  auto& stored = parts.tensors.at(tensor);
  stored.bytes.assign(stored.bytes.size() / 4, std::byte{0x38});
  stored.dtype = Dtype::F8_E4M3;
  return parts.open(folder);
}

TEST(RewritePlan, GainsThatOtherPartsOfTheModelUseAreLeft) {
  EXPECT_TRUE(says(left("gpt2", [](Model& model) { model.norms[1].gain = model.norms[0].gain; }),
                   "\"transformer.h.0.ln_1.weight\" is shared with another norm"));
  EXPECT_TRUE(says(left("gpt2", [](Model& model) { model.norms[1].bias = model.norms[0].bias; }),
                   "\"transformer.h.0.ln_1.bias\" is shared with another norm"));
  EXPECT_TRUE(says(left("gpt2", [](Model& model) { model.norms[0].placement = models::Placement::unknown; }),
                   "where it stands is not known"));
  EXPECT_TRUE(says(left("llama", [](Model& model) { model.norms[0].readers[1].in = 8; }),
                   "reads 8 features, the norm has 16"));
  EXPECT_TRUE(
      says(left("llama", [](Model& model) { model.norms[1].readers.push_back(model.norms[0].readers[0]); }),
           "reads another norm too"));
  EXPECT_TRUE(says(left("gpt2", [](Model& model) { model.norms[0].readers.pop_back(); }),
                   "not all outputs of \"transformer.h.0.attn.c_attn.weight\" are known to read it"));
  EXPECT_TRUE(says(left("llama", [](Model& model) { model.norms[0].gain->count = 1; }),
                   "its gain is one number for all features"));
}

TEST(RewritePlan, GainsOfOtherDtypesAreLeft) {
  const Scratch scratch;
  const auto reason = [&](const std::string& name, const std::string& tensor) {
    return planned(with_8_bits(name, tensor, scratch / tensor), folds).norms.at(0).reason;
  };
  EXPECT_EQ(reason("llama", "model.layers.0.input_layernorm.weight"),
            "\"model.layers.0.input_layernorm.weight\" is stored as F8_E4M3");
  EXPECT_EQ(reason("llama", "model.layers.0.self_attn.k_proj.weight"),
            "\"model.layers.0.self_attn.k_proj.weight\" is stored as F8_E4M3");
  EXPECT_EQ(reason("gpt2", "transformer.h.0.attn.c_attn.bias"),
            "\"transformer.h.0.attn.c_attn.bias\" is stored as F8_E4M3");
}

TEST(RewritePlan, BiasesStayWhereNoReaderTakesThem) {
  const auto folded = [](const std::string& name, const Describes& change) {
    const Plan plan = planned(name, folds, change);
    EXPECT_EQ(plan.norms.back().fold, Fold::gain);
    return plan.norms.back().reason;
  };
  EXPECT_TRUE(
      says(folded("phi", [](Model& model) { model.vocabulary->logit_scale = 2.0; }),
           "the bias of \"lm_head.weight\" is not scaled as its products are: the norm's bias stays"));
  const Plan shared = planned(
      "phi", folds, [](Model& model) { model.norms[0].readers[1].bias = model.norms[0].readers[0].bias; });
  EXPECT_EQ(shared.norms[0].fold, Fold::gain);
  EXPECT_TRUE(says(shared.norms[0].reason, "shares its bias"));

  const Scratch scratch;
  Copy copy(fixture("stablelm"));
  copy.tensors.at("model.norm.bias").values[1] = 0.0;
  copy.tensors.at("model.norm.weight").values[1] = 0.0;
  const files::Checkpoint zero = copy.open(scratch / "zero");
  const test::Rewritten divided(zero, folds, scratch / "divided");
  EXPECT_EQ(divided.plan.norms.back().fold, Fold::gain) << "0 / 0 is not needed";
  const std::vector<double> before = read(*zero.find("model.norm.bias"));
  const std::vector<double> gains = read(*zero.find("model.norm.weight"));
  const std::vector<double> after = read(*divided.output.find("model.norm.bias"));
  for (std::size_t j = 0; j < after.size(); ++j) {
    EXPECT_NEAR(after[j], before[j] == 0.0 ? 0.0 : before[j] / gains[j], 1e-6) << j;
  }
  // The bias that stays is rotated, divided or not.
  const test::Rewritten rotated(zero, {.fold_gains = true, .rotation = RotationRequest{1, nullptr}},
                                scratch / "rotated");
  std::vector<double> expected = after;
  rotated.plan.rotations.at(0).rotation->apply(expected);
  const std::vector<double> turned = read(*rotated.output.find("model.norm.bias"));
  for (std::size_t j = 0; j < turned.size(); ++j) EXPECT_NEAR(turned[j], expected[j], 1e-6) << j;
  for (double& gain : copy.tensors.at("model.norm.weight").values) gain = 1.0;
  const Plan one = planned(copy.open(scratch / "one"), folds);
  EXPECT_EQ(one.norms.back().fold, Fold::neutral);
  EXPECT_EQ(one.norms.back().reason, "its gain is 1; the norm's bias stays: \"lm_head.weight\" has no bias");
}

TEST(RewritePlan, ANormWithoutAGainFoldsItsBias) {
  const Scratch scratch;
  Copy copy(fixture("gpt2"));
  copy.tensors.at("transformer.h.0.ln_1.bias").values[2] = 1000.0;
  const files::Checkpoint source = copy.open(scratch / "in");
  Model model = models::describe(source);
  model.norms[0].gain.reset();
  const Plan plan = make_plan(source, model, folds);
  EXPECT_EQ(plan.norms[0].fold, Fold::gain_and_bias);
  for (const Edit& edit : plan.edits) {
    EXPECT_FALSE(edit.norm == std::size_t{0} && edit.change == Change::neutral_gain);
  }
  static_cast<void>(write(source, model, plan, scratch / "out"));
  const files::Checkpoint output(scratch / "out");
  const NormSpec norm = read_norm(source, model.norms[0]);
  const models::Linear& reader = model.norms[0].readers[0];
  EXPECT_EQ(read_weight(output, reader, 0, reader.out), read_weight(source, reader, 0, reader.out));
  const std::vector<double> weight = read_weight(source, reader, 0, 1);
  double bias = read_bias(source, reader)[0];
  for (std::size_t j = 0; j < weight.size(); ++j) bias += weight[j] * norm.bias_at(j);
  EXPECT_NEAR(read_bias(output, reader)[0], bias, 1e-6 * std::abs(bias));
  for (const double value : read_norm(output, model.norms[0]).bias) EXPECT_EQ(value, 0.0);

  const Plan scales = make_plan(source, model, migrates);
  EXPECT_EQ(scales.norms[0].fold, Fold::scales);
  EXPECT_EQ(std::count_if(scales.edits.begin(), scales.edits.end(),
                          [](const Edit& edit) {
                            return edit.norm == std::size_t{0} && edit.change == Change::divide_by_scale;
                          }),
            1)
      << "the bias alone";
  static_cast<void>(write(source, model, scales, scratch / "scales"));
  const NormSpec migrated = read_norm(files::Checkpoint(scratch / "scales"), model.norms[0]);
  for (std::size_t j = 0; j < norm.width; ++j) {
    EXPECT_EQ(migrated.bias_at(j), norm.bias_at(j) / scales.specs[0].gain_at(j)) << j;
  }
}

TEST(RewritePlan, FeaturesThatAreAlwaysZeroHaveTheScaleOne) {
  const Scratch scratch;
  Copy copy(fixture("gpt2"));
  std::vector<double>& gain = copy.tensors.at("transformer.h.0.ln_1.weight").values;
  std::vector<double>& bias = copy.tensors.at("transformer.h.0.ln_1.bias").values;
  gain[3] = bias[3] = gain[5] = 0.0;
  bias[5] = 0x1p-40;
  const Plan plan = planned(copy.open(scratch / "in"), migrates);
  ASSERT_EQ(plan.norms[0].fold, Fold::scales);
  EXPECT_EQ(plan.specs[0].gain[3], 1.0);
  EXPECT_LT(plan.specs[0].gain[5], 0x1p-38) << "its bias alone says how large it is";
}

TEST(RewritePlan, ScalesDoNotMigrateOnceGainsAreFolded) {
  const Scratch scratch;
  const test::Rewritten folded(files::Checkpoint(fixture("llama")), folds, scratch / "folded");
  const Plan plan = planned(folded.output, migrates);
  for (const NormPlan& norm : plan.norms) {
    EXPECT_EQ(norm.fold, Fold::neutral);
    EXPECT_EQ(norm.reason, "rewritten before, as the file's metadata say");
  }
  EXPECT_TRUE(plan.edits.empty());
  const Plan centered = planned(files::Checkpoint(fixture("gpt_neox")), centers);
  EXPECT_EQ(marker(centered), "{\"streams\":\"centered\"}");
}

TEST(RewritePlan, MarkersThatAreNoneAreIgnored) {
  const Scratch scratch;
  auto parts = parts_of(files::Checkpoint(fixture("llama")));
  for (const char* text : {"folded", "[1]", "{\"gains\": 3}", ""}) {
    parts.metadata[marker_key] = text;
    const Plan plan = planned(parts.open(scratch / "in"), folds);
    EXPECT_FALSE(plan.folded_before) << text;
    EXPECT_EQ(plan.norms[0].fold, Fold::gain) << text;
  }
  parts.metadata[marker_key] = "{\"gains\": \"folded\"}";
  EXPECT_EQ(planned(parts.open(scratch / "in"), folds).norms[0].fold, Fold::neutral);
}

TEST(RewritePlan, StreamsKeepTheirMeanWhereSomethingElseReadsIt) {
  EXPECT_EQ(not_centered([](Model& model) { model.norms[1].groups = 2; }),
            "gpt_neox.layers.0.post_attention_layernorm is no LayerNorm");
  EXPECT_EQ(not_centered([](Model& model) { model.norms[0].kind = NormKind::derf; }),
            "gpt_neox.layers.0.input_layernorm is no LayerNorm");
  EXPECT_TRUE(says(not_centered([](Model& model) { model.norms[2].writing_norms = {"n"}; }),
                   "the norm n writes to the stream"));
  EXPECT_EQ(not_centered([](Model& model) { model.norms.back().role = "mlp input"; }),
            "its last reader is not a final norm");
  EXPECT_EQ(not_centered([](Model& model) { model.centres_exactly = false, model.title = "Other"; }),
            "all that writes to the stream of Other is not known for certain");
  EXPECT_TRUE(says(
      not_centered([](Model& model) { model.norms[1].readers.push_back(model.norms[0].writers.front()); }),
      "\"gpt_neox.embed_in.weight\" reads a norm and writes to the stream"));
  EXPECT_TRUE(says(not_centered([](Model& model) {
                     Norm other = model.norms[0];
                     other.stack = "decoder";
                     model.norms.push_back(other);
                   }),
                   "\"gpt_neox.embed_in.weight\" writes to two streams"));
  const Scratch scratch;
  const Plan plan =
      planned(with_8_bits("gpt_neox", "gpt_neox.layers.0.attention.dense.weight", scratch / "in"), centers);
  EXPECT_EQ(plan.streams.at(0).reason, "\"gpt_neox.layers.0.attention.dense.weight\" is stored as F8_E4M3");
}

// The embedding of positions stands before that of tokens.
TEST(RewritePlan, ATiedTableKeepsItsMeanWhereverItIsListed) {
  const Plan plan = planned("gpt2", centers, [](Model& model) {
    std::reverse(model.norms[0].writers.begin(), model.norms[0].writers.end());
  });
  EXPECT_TRUE(says(plan.streams.at(0).reason, "\"transformer.wte.weight\" is the head too; untying"));
}

TEST(RewritePlan, StreamsAreNotRotatedWhereSomethingElseTouchesThem) {
  const auto llama = [](const Describes& change) { return not_rotated("llama", change); };
  EXPECT_TRUE(says(llama([](Model& model) { model.norms[0].groups = 2; }),
                   "model.layers.0.input_layernorm is no RMSNorm or LayerNorm of all features"));
  EXPECT_TRUE(says(llama([](Model& model) { model.norms[0].kind = NormKind::derf; }),
                   "is no RMSNorm or LayerNorm of all features"));
  EXPECT_EQ(llama([](Model& model) { model.norms[0].applications = 3; }),
            "model.layers.0.input_layernorm is applied 3 times");
  EXPECT_EQ(llama([](Model& model) { model.norms[0].readers.clear(); }),
            "no linear map of the file reads model.layers.0.input_layernorm");
  EXPECT_TRUE(says(llama([](Model& model) { model.norms[1].gain = model.norms[0].gain; }),
                   "\"model.layers.0.input_layernorm.weight\" is shared with another norm"));
  EXPECT_EQ(llama([](Model& model) { model.norms.back().role = "mlp input"; }),
            "its last reader is not a final norm");
  EXPECT_EQ(llama([](Model& model) { model.rotates_exactly = false, model.title = "Other"; }),
            "whether all that touches the stream of Other rotates is not known for certain");
}

// Gains of 1 leave nothing to fold, so that the readers are looked at here alone.
TEST(RewritePlan, ReadersAndWritersThatDoNotRotateAreNamed) {
  const Scratch scratch;
  Copy ones(fixture("llama"));
  for (auto& [name, tensor] : ones.tensors) {
    if (tensor.shape.size() == 1) std::fill(tensor.values.begin(), tensor.values.end(), 1.0);
  }
  const files::Checkpoint source = ones.open(scratch / "in");
  const auto reason = [&](const Describes& change) {
    return planned(source, rotates, change).rotations.at(0).reason;
  };
  EXPECT_EQ(reason({}), "");
  EXPECT_TRUE(says(reason([](Model& model) { model.norms[0].readers[0].in = 8; }), "reads 8 features"));
  EXPECT_TRUE(says(reason([](Model& model) { model.norms[1].readers.push_back(model.norms[0].readers[0]); }),
                   "reads another norm too"));
  EXPECT_TRUE(says(reason([](Model& model) { model.norms[0].readers[0].out -= 1; }),
                   "are known to read model.layers.0.input_layernorm"));
  EXPECT_TRUE(says(reason([](Model& model) {
                     model.norms[0].readers.push_back(model.norms[1].writers.front());
                     model.norms[0].readers.back().in = 16;
                     model.norms[0].readers.back().out = model.norms[0].readers.back().stored_out;
                   }),
                   "reads a norm and writes to the stream"));
  const auto of_8_bits = [&](const std::string& name) {
    auto parts = parts_of(source);
    auto& stored = parts.tensors.at(name);
    stored.bytes.assign(stored.bytes.size() / 4, std::byte{0x38});
    stored.dtype = Dtype::F8_E4M3;
    return planned(parts.open(scratch / name), rotates).rotations.at(0).reason;
  };
  for (const char* name : {"model.layers.0.self_attn.k_proj.weight", "model.layers.1.mlp.down_proj.weight"}) {
    EXPECT_EQ(of_8_bits(name), "\"" + std::string(name) + "\" is stored as F8_E4M3");
  }
}

TEST(RewritePlan, ScalesThatMigrateLeaveAGain) {
  const Scratch scratch;
  Copy copy(fixture("gpt_neox"));
  for (auto& [name, tensor] : copy.tensors) {
    const bool is_gain = tensor.shape.size() == 1 && name.find("layernorm.weight") != std::string::npos;
    if (is_gain || name == "gpt_neox.final_layer_norm.weight") {
      std::fill(tensor.values.begin(), tensor.values.end(), 1.0);
    }
    if (name == "gpt_neox.layers.0.input_layernorm.bias") tensor.values[0] = 1e3;
  }
  const files::Checkpoint source = copy.open(scratch / "in");
  EXPECT_TRUE(planned(source, rotates).rotations.at(0).rotation);
  const Plan plan = planned(source, {.migrate = true, .rotation = RotationRequest{1, nullptr}});
  EXPECT_EQ(plan.norms[0].fold, Fold::scales);
  EXPECT_FALSE(plan.rotations.at(0).rotation);
  EXPECT_TRUE(says(plan.rotations.at(0).reason, "input_layernorm has a gain, which folding gains moves"));
}

TEST(RewritePlan, HeadsThatCannotBeSeparatedAreNamed) {
  const Scratch scratch;
  const auto refusal = [](const files::Checkpoint& source, const Describes& change = {}) {
    return error_of(ErrorCode::Unsupported,
                    [&] { static_cast<void>(planned(source, {.untie = true}, change)); });
  };
  const files::Checkpoint gpt2(fixture("gpt2"));
  EXPECT_TRUE(says(refusal(gpt2, [](Model& model) { model.vocabulary->final_norm = ""; }),
                   "no norm of the residual stream is what the head reads"));
  EXPECT_TRUE(
      says(refusal(gpt2, [](Model& model) { model.norms.back().placement = models::Placement::post; }),
           "no norm of the residual stream is what the head reads"));
  EXPECT_TRUE(says(refusal(files::Checkpoint(fixture("vit"))), "has no tied head"));
  Copy section(fixture("gpt2"));
  section.config.insert(1, "\"text_config\": {},");
  Copy headless(fixture("gpt2"));
  headless.tensors.clear();
  for (auto& [name, tensor] : Copy(fixture("gpt2")).tensors) {
    headless.tensors[name.substr(std::string("transformer.").size())] = tensor;
  }
  EXPECT_TRUE(says(refusal(headless.open(scratch / "headless")),
                   "the file holds the model without its head, so a head's tensor would not be loaded"));
  EXPECT_TRUE(says(refusal(section.open(scratch / "section")),
                   "its configuration has a section for the language model"));
}

TEST(RewritePlan, WhatIsNotModelledIsLeftAsItIs) {
  const auto plan_with = [](const Describes& change) { return planned("llama", folds, change); };
  EXPECT_TRUE(says(
      error_of(ErrorCode::Unsupported,
               [&] { static_cast<void>(plan_with([](Model& model) { model.not_modelled = "cap: 3"; })); }),
      "not modelled: cap: 3"));
  const Plan reader = plan_with([](Model& model) { model.norms[1].readers[0].not_modelled = "an adapter"; });
  EXPECT_EQ(reader.norms[0].fold, Fold::gain);
  EXPECT_EQ(reader.norms[1].fold, Fold::nothing);
  EXPECT_EQ(reader.norms[1].reason, "not modelled: an adapter");
  const Plan norm = plan_with([](Model& model) { model.norms[2].not_modelled = "a scale"; });
  EXPECT_EQ(norm.norms[2].reason, "not modelled: a scale");
}

TEST(RewritePlan, TensorNamesAloneSayWhatAModelIs) {
  const Scratch scratch;
  Copy copy(fixture("llama"));
  const std::string field = "\"model_type\": \"llama\",";
  copy.config.replace(copy.config.find(field), field.size(), "");
  EXPECT_EQ(planned(copy.open(scratch / "in"), folds).norms[0].fold, Fold::gain);
}

TEST(RewritePlan, AModelWithoutAStreamHasNothingToRotate) {
  const files::Checkpoint source(fixture("llama"));
  const Plan plan = planned(source, {.fold_gains = true, .rotation = RotationRequest{1, nullptr}},
                            [](Model& model) { model.norms.clear(); });
  EXPECT_TRUE(says(error_of(ErrorCode::Unsupported, [&] { expect_something(source, plan); }),
                   "cannot be rotated exactly: it has no residual stream"));
}

TEST(RewritePlan, ATensorIsNotChangedTwice) {
  const Scratch scratch;
  const files::Checkpoint source(fixture("llama"));
  const Model model = models::describe(source);
  Plan plan = make_plan(source, model, folds);
  plan.edits.push_back(plan.edits.front());
  EXPECT_TRUE(says(error_of(ErrorCode::Unsupported,
                            [&] { static_cast<void>(write(source, model, plan, scratch / "out")); }),
                   "would be changed twice"));
}

}  // namespace
}  // namespace normscope::rewrite
