#include <normscope/rewrite/compare.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "../../src/rewrite/compare_steps.hpp"
#include "rewrite/copy.hpp"
#include "rewrite/stored_parts.hpp"
#include "support/files.hpp"

/// Comparisons of a model with another format of it: a graph that was exported, or GGUF.
namespace normscope::rewrite {
namespace {

using models::Model;
using test::Copy;
using test::error_of;
using test::fixture;
using test::parts_of;
using test::Scratch;

/// A checkpoint, and the ONNX file that torch exported of it.
struct Exported {
  Exported() {
    const std::filesystem::path folder = fixture("exported_llama");
    before.emplace(folder);
    after.emplace(folder / "script.onnx");
    old_model = models::describe(*before);
    new_model = models::describe(*after);
  }

  [[nodiscard]] Comparison compared() const { return compare(*before, old_model, *after, new_model); }

  std::optional<files::Checkpoint> before{}, after{};
  Model old_model, new_model;
};

testing::AssertionResult lists(const std::vector<std::string>& texts, const std::string& part) {
  std::string all;
  for (const std::string& text : texts) {
    if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
    all += text + "\n";
  }
  return testing::AssertionFailure() << "\"" << part << "\" is not in\n" << all;
}

TEST(RewriteCompareGraph, NormsWithoutACounterpartAreListed) {
  Exported fewer;
  ASSERT_EQ(fewer.compared().agreement, Agreement::undecided);
  ASSERT_EQ(fewer.compared().norms.size(), 3U);
  fewer.new_model.norms.pop_back();
  EXPECT_TRUE(lists(fewer.compared().not_compared, "model.norm: no norm of NEW corresponds to it"));
  EXPECT_EQ(fewer.compared().norms.size(), 2U);
  Exported more;
  const std::string name = more.new_model.norms.front().name;
  more.old_model.norms.erase(more.old_model.norms.begin());
  EXPECT_TRUE(lists(more.compared().not_compared, name + " of NEW: no norm of OLD corresponds to it"));
  Exported narrower;
  narrower.new_model.norms[1].gain.reset();
  narrower.new_model.norms[1].width = 4;
  EXPECT_TRUE(lists(narrower.compared().not_compared,
                    "model.layers.0.post_attention_layernorm: no norm of NEW corresponds to it"));
}

// Matrices of two layers exchanged have the values that a search for them anywhere would find.
TEST(RewriteCompareGguf, MapsThatReadTheStreamAreComparedInTheirPlaces) {
  const Scratch scratch;
  const files::Checkpoint converted(std::filesystem::path(NORMSCOPE_SOURCE_DIR) /
                                    "tests/models/gguf/olmo2.gguf");
  for (const bool exchanged : {false, true}) {
    Copy copy(fixture("olmo2"));
    if (exchanged) {
      for (const char* name : {"self_attn.k_proj.weight", "mlp.gate_proj.weight"}) {
        std::swap(copy.tensors.at("model.layers.0." + std::string(name)).values,
                  copy.tensors.at("model.layers.1." + std::string(name)).values);
      }
    }
    const files::Checkpoint before = copy.open(scratch / (exchanged ? "exchanged" : "whole"));
    const Comparison comparison =
        compare(before, models::describe(before), converted, models::describe(converted));
    EXPECT_EQ(comparison.agreement, exchanged ? Agreement::different : Agreement::same);
    EXPECT_EQ(comparison.witness.has_value(), exchanged) << comparison.no_witness;
  }
}

TEST(RewriteCompareGraph, ReadersAreMatchedByTheirShapes) {
  Exported missing;
  missing.new_model.norms[0].readers.erase(missing.new_model.norms[0].readers.begin());
  const Comparison comparison = missing.compared();
  EXPECT_EQ(comparison.norms.at(0).readers.size(), missing.old_model.norms[0].readers.size() - 1);
  EXPECT_EQ(comparison.norms.at(0).agreement, Agreement::same) << "what is left is the same";

  // A gain that changed and a reader that is not there: the reader may not make up for it.
  const Scratch scratch;
  Copy copy(fixture("exported_llama"));
  for (double& gain : copy.tensors.at("model.layers.0.input_layernorm.weight").values) gain *= 2.0;
  for (const char* name : {"q", "k", "v"}) {
    auto& weight = copy.tensors.at(std::string("model.layers.0.self_attn.") + name + "_proj.weight").values;
    for (double& value : weight) value *= 0.5;
  }
  missing.before.emplace(copy.open(scratch / "old"));
  EXPECT_EQ(missing.compared().norms.at(0).agreement, Agreement::different);
  Exported whole;
  whole.before.emplace(copy.open(scratch / "whole"));
  EXPECT_EQ(whole.compared().norms.at(0).agreement, Agreement::equivalent);
}

TEST(RewriteCompareGraph, EachReaderIsMatchedOnce) {
  const Scratch scratch;
  Copy copy(fixture("exported_llama"));
  const std::string at = "model.layers.0.self_attn.";
  copy.tensors.at(at + "v_proj.weight").values = copy.tensors.at(at + "k_proj.weight").values;
  Exported exported;
  exported.before.emplace(copy.open(scratch / "old"));
  const Comparison comparison = exported.compared();
  std::vector<std::string> matched;
  for (const ReaderComparison& reader : comparison.norms.at(0).readers) matched.push_back(reader.new_weight);
  std::sort(matched.begin(), matched.end());
  EXPECT_EQ(std::unique(matched.begin(), matched.end()), matched.end());
  EXPECT_EQ(comparison.norms[0].agreement, Agreement::different);
  Exported narrower;
  const std::size_t readers = narrower.old_model.norms[0].readers.size();
  narrower.new_model.norms[0].readers[0].in = 4;
  EXPECT_EQ(narrower.compared().norms.at(0).readers.size(), readers - 1);
}

TEST(RewriteCompareGraph, ATransposedTensorOfTheSameNameIsFound) {
  const Scratch scratch;
  Copy copy(fixture("exported_llama"));
  Copy::Values& table = copy.tensors.at("model.embed_tokens.weight");
  const std::vector<double> values = table.values;
  table.shape = {8, 11};
  for (std::size_t i = 0; i < 11; ++i) {
    for (std::size_t j = 0; j < 8; ++j) table.values[j * 11 + i] = values[i * 8 + j];
  }
  Exported exported;
  exported.before.emplace(copy.open(scratch / "old"));
  const Comparison comparison = exported.compared();
  const auto found =
      std::find_if(comparison.others.begin(), comparison.others.end(),
                   [](const OtherComparison& other) { return other.name == "model.embed_tokens.weight"; });
  ASSERT_NE(found, comparison.others.end());
  EXPECT_EQ(found->change, 0.0);
}

TEST(RewriteCompareGraph, OnlyNumbersThatAreReadAreMatched) {
  const Scratch scratch;
  Exported exported;
  auto parts = parts_of(*exported.before);
  parts.tensors["four_bits"] = {Dtype::F4, {4}, std::vector<std::byte>(2)};
  for (const files::Tensor& tensor : exported.after->tensors()) {
    const std::uint64_t count = tensor.elements();
    parts.tensors["integers." + std::to_string(count)] = {
        Dtype::I32, {count}, std::vector<std::byte>(4 * count)};
  }
  const Comparison before = exported.compared();
  exported.before.emplace(parts.open(scratch / "old"));
  EXPECT_EQ(exported.compared().not_compared, before.not_compared);
}

TEST(RewriteCompareGraph, ATensorOfTheSameNameHasTheSameShape) {
  const Scratch scratch;
  Exported exported;
  auto parts = parts_of(*exported.before);
  std::vector<std::string> names;
  for (const files::Tensor& tensor : exported.after->tensors()) {
    const std::string name(tensor.name);
    if (!is_floating(tensor.dtype) || parts.tensors.contains(name)) continue;
    parts.tensors[name] = {Dtype::F32, {1000}, std::vector<std::byte>(4000)};
    names.push_back(name);
  }
  ASSERT_FALSE(names.empty());
  exported.before.emplace(parts.open(scratch / "old"));
  const Comparison comparison = exported.compared();
  for (const std::string& name : names) {
    EXPECT_TRUE(lists(comparison.not_compared, name + ": no tensor of NEW has its values"));
  }
}

TEST(RewriteCompareGraph, TensorsOfOtherShapesAreNotMatched) {
  const Scratch scratch;
  Copy copy(fixture("exported_llama"));
  copy.tensors["lonely"] = {Dtype::F32, {3}, {1.0, 2.0, 3.0}};
  copy.tensors["model.layers.0.mlp.extra.weight"] = {Dtype::F32, {2, 48}, std::vector<double>(96, 1.0)};
  Exported exported;
  exported.before.emplace(copy.open(scratch / "old"));
  exported.old_model = models::describe(*exported.before);
  const Comparison comparison = exported.compared();
  EXPECT_TRUE(lists(comparison.not_compared, "lonely: no tensor of NEW has its values"));
  EXPECT_TRUE(
      lists(comparison.not_compared, "model.layers.0.mlp.extra.weight: no tensor of NEW has its values"));
}

TEST(RewriteCompareContent, OnlyPairsOfWholeHeadsAreReordered) {
  const files::Checkpoint file(std::filesystem::path(NORMSCOPE_SOURCE_DIR) / "tests/models/gguf/llama.gguf");
  const Model model = models::describe(file);
  ASSERT_TRUE(model.heads.at(0).rotary && model.heads[0].rotary->interleaved);
  const auto query_order = [](const Model& described) {
    const models::Indices& order = described.norms.at(0).readers.at(0).out_indices;
    return std::vector<std::uint64_t>(order.begin(), order.end());
  };
  ASSERT_EQ(model.norms[0].readers[0].role, "query");
  const std::vector<std::uint64_t> order = query_order(with_split_pairs(model));
  ASSERT_EQ(order.size(), model.norms[0].readers[0].out);
  EXPECT_EQ(order[0], 0U);
  EXPECT_EQ(order[1], 2U) << "the first of the second pair";
  const auto unchanged = [&](const std::function<void(Model&)>& change) {
    Model other = model;
    change(other);
    const std::vector<std::uint64_t> before = query_order(other);
    return query_order(with_split_pairs(other)) == before;
  };
  EXPECT_FALSE(unchanged([](Model&) {}));
  EXPECT_TRUE(unchanged([](Model& other) {
    for (models::Head& head : other.heads) head.query.reset();
  }));
  EXPECT_TRUE(unchanged([](Model& other) {
    for (models::Head& head : other.heads) head.rotary->dims = head.query->out + 2;
  }));
  EXPECT_TRUE(unchanged([](Model& other) {
    for (models::Head& head : other.heads) head.query->out_indices = {1, 0};
  }));
  EXPECT_TRUE(unchanged([](Model& other) {
    for (models::Head& head : other.heads) head.rotary->interleaved = false;
  }));
  EXPECT_TRUE(unchanged([](Model& other) {
    for (models::Head& head : other.heads) head.rotary.reset();
  }));
  EXPECT_TRUE(unchanged([](Model& other) {
    models::Linear& query = other.norms[0].readers[0];
    for (std::uint64_t j = 0; j < query.out; ++j) query.out_indices.push_back(query.out - 1 - j);
  }));
}

/// Compares an original, in whose configuration `text` is replaced, with the file that was converted from it.
Comparison compared_with_converted(const std::string& name, const std::string& text = {},
                                   const std::string& other = {}) {
  Copy copy(fixture(name.substr(0, name.find('.'))));
  if (const std::size_t at = copy.config.find(text); at != std::string::npos) {
    copy.config.replace(at, text.size(), other);
  }
  const Scratch scratch;
  const files::Checkpoint original = copy.open(scratch / name);
  const files::Checkpoint converted(std::filesystem::path(NORMSCOPE_SOURCE_DIR) / "tests/models/gguf" /
                                    (name + ".gguf"));
  return compare(original, models::describe(original), converted, models::describe(converted));
}

// Reordered rows of queries and keys (Granite), a fused matrix in another order (BLOOM), another name of the
// family (Command R), norms without a tensor (OLMo), stacked experts (Qwen's), one matrix for queries, keys
// and values (--fuse-qkv).
TEST(RewriteCompareGguf, AConvertedFileIsTheSameModel) {
  std::istringstream names(
      "qwen3 phi3 granite olmo olmo2 cohere stablelm bloom gpt_neox phi_ungrouped glm4 "
      "qwen2_moe_sparse qwen3_moe_sparse seed_oss granitemoe olmo3 qwen3_yarn llama.fused "
      "qwen3.fused qwen2_moe_sparse.fused nomic_bert rwkv6 rwkv7 glm4_moe cohere2_period ");
  for (std::string name; names >> name;) {
    EXPECT_EQ(compared_with_converted(name).agreement, Agreement::same) << name;
  }
  for (const char* const name : {"gemma", "nemotron"}) {
    EXPECT_EQ(compared_with_converted(name).agreement, Agreement::equivalent) << "1 + w was rounded";
  }
}

// The converter writes 2048 positions for every Falcon, whose rotary frequencies do not depend on them.
TEST(RewriteCompareGguf, MorePositionsOfListedFrequenciesAreTheSame) {
  for (const char* const name : {"falcon_7b", "falcon_40b"}) {
    EXPECT_EQ(compared_with_converted(name).agreement, Agreement::same) << name;
  }
  for (const auto& [name, scaling, expected] :
       {std::tuple{"llama", "", Agreement::same},
        {"llama", "\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2.0},", Agreement::undecided},
        {"bert", "", Agreement::undecided}}) {
    const Scratch scratch;
    std::vector<files::Checkpoint> both;
    for (const char* const positions : {"32", "64"}) {
      Copy copy(fixture(name));
      const std::string field = "\"max_position_embeddings\": ";
      copy.config.replace(copy.config.find(field), field.size() + 2, scaling + field + positions);
      if (*scaling != '\0') {
        const std::string section = "\"rope_parameters\"";
        copy.config.replace(copy.config.find(section), section.size(), "\"unused\"");
      }
      both.push_back(copy.open(scratch / positions));
    }
    const Comparison found = compare(both[0], models::describe(both[0]), both[1], models::describe(both[1]));
    EXPECT_EQ(found.agreement, expected) << name << scaling;
  }
}

// Qwen3-MoE's class has no scale of experts and Mixtral's always normalizes: the fields change nothing, which
// no description says.
TEST(RewriteCompare, FieldsThatNothingReadAreNoDifference) {
  for (const auto& [name, field] :
       {std::pair{"qwen3_moe", "\"routed_scaling_factor\": "}, {"mixtral", "\"norm_topk_prob\": "}}) {
    const Scratch scratch;
    std::vector<files::Checkpoint> both;
    for (const char* const value : {"true", "false"}) {
      Copy copy(fixture(name));
      const std::string text = std::string("{") + field + value + ",";
      copy.config.replace(copy.config.find('{'), 1, text);
      both.push_back(copy.open(scratch / value));
    }
    EXPECT_EQ(compare(both[0], models::describe(both[0]), both[1], models::describe(both[1])).agreement,
              Agreement::undecided)
        << name;
  }
}

// Experts that are chosen in groups are not described, so that neither is what the field says of their
// weights.
TEST(RewriteCompare, WeightsOfExpertsInGroupsAreUndecided) {
  const Scratch scratch;
  std::vector<files::Checkpoint> both;
  for (const char* const value : {"true", "false"}) {
    Copy copy(fixture("glm4_moe"));
    for (const auto& [before, after] :
         {std::pair<std::string, std::string>{"\"n_group\": 1", "\"n_group\": 2"},
          {"\"norm_topk_prob\": true", std::string("\"norm_topk_prob\": ") + value}}) {
      copy.config.replace(copy.config.find(before), before.size(), after);
    }
    both.push_back(copy.open(scratch / value));
  }
  const Model first = models::describe(both[0]);
  EXPECT_EQ(compare(both[0], first, both[1], models::describe(both[1])).agreement, Agreement::undecided);
  EXPECT_EQ(compare(both[0], first, both[0], first).agreement, Agreement::same);
}

// A description of what is not modelled may contain less than the fields that it reads: transformers
// computes something else with each of these.
TEST(RewriteCompare, FieldsOfWhatIsNotModelledAreNoProof) {
  for (const auto& [name, before, after, expected] :
       {std::tuple{"falcon_h1", "\"rms_norm_eps\": 0.0003", "\"rms_norm_eps\": 0.1", Agreement::undecided},
        {"longcat_flash", "\"rms_norm_eps\": 0.0003", "\"rms_norm_eps\": 0.1", Agreement::undecided},
        {"longcat_flash", "\"head_dim\": 4", "\"head_dim\": 1", Agreement::undecided},
        {"ministral3", "\"original_max_position_embeddings\": 3", "\"original_max_position_embeddings\": 4",
         Agreement::undecided},
        {"mllama", "\"norm_eps\": 1e-05", "\"norm_eps\": 0.1", Agreement::different}}) {
    const Scratch scratch;
    Copy copy(fixture(name));
    const files::Checkpoint original = copy.open(scratch / "before");
    copy.config.replace(copy.config.find(before), std::string(before).size(), after);
    const files::Checkpoint changed = copy.open(scratch / "after");
    EXPECT_EQ(compare(original, models::describe(original), changed, models::describe(changed)).agreement,
              expected)
        << name << " " << after;
  }
}

// The converter writes eps 1e-5 for every MPT. llama.cpp knows one largest distance of T5's relative
// positions.
TEST(RewriteCompareGguf, WhatTheConverterAssumesIsTheSameIfItHolds) {
  const std::string distance = "\"relative_attention_max_distance\": ";
  EXPECT_EQ(compared_with_converted("t5_gated").agreement, Agreement::undecided);
  EXPECT_EQ(compared_with_converted("t5_gated", distance + "5", distance + "128").agreement, Agreement::same);
  const std::string eps = "\"layer_norm_epsilon\": 0.0003";
  EXPECT_EQ(compared_with_converted("mpt").agreement, Agreement::different);
  EXPECT_EQ(compared_with_converted("mpt", eps, "\"layer_norm_epsilon\": 1e-5").agreement, Agreement::same);
}

// The converter leaves out BERT's pooler.
TEST(RewriteCompareGguf, BertWithoutAPoolerIsTheSame) {
  const Scratch scratch;
  Copy copy(fixture("bert_encoder"));
  for (const char* const part : {"weight", "bias"}) {
    EXPECT_EQ(copy.tensors.erase(std::string("pooler.dense.") + part), 1U);
  }
  const files::Checkpoint original = copy.open(scratch / "old");
  const files::Checkpoint converted(std::filesystem::path(NORMSCOPE_SOURCE_DIR) /
                                    "tests/models/gguf/bert_encoder.gguf");
  EXPECT_EQ(compare(original, models::describe(original), converted, models::describe(converted)).agreement,
            Agreement::same);
}

// A decay is stored as -exp(A_log). Llama 4's experts have one matrix for gate and input, which are not
// described because the router's weight multiplies what they read; its layers without rotation are not
// stated.
TEST(RewriteCompareGguf, WhatIsStoredInAnotherWayIsNamed) {
  for (const char* const name : {"mamba", "mamba2"}) {
    const Comparison comparison = compared_with_converted(name);
    EXPECT_EQ(comparison.agreement, Agreement::undecided) << name;
    EXPECT_TRUE(lists(comparison.not_compared, "blk.0.ssm_a of NEW: no tensor of OLD has its values"));
  }
  const Comparison comparison =
      compared_with_converted("llama4", "\"no_rope_layers\": [\n    1,\n    0\n  ],");
  EXPECT_EQ(comparison.agreement, Agreement::undecided);
  EXPECT_TRUE(lists(comparison.not_compared, "experts.gate_up_proj: no tensor of NEW has its values"));
  EXPECT_EQ(comparison.norms.size(), 7U);
}

TEST(RewriteCompareGguf, WhatTheConverterDropsIsADifference) {
  for (const char* const name :
       {"qwen2", "starcoder2", "mixtral", "gemma2", "gemma3", "olmoe", "t5", "smollm3"}) {
    EXPECT_EQ(compared_with_converted(name).agreement, Agreement::different) << name;
  }
}

// llama.cpp's files have no entry for these fields; its code of OLMo has one activation.
TEST(RewriteCompareGguf, WhatTheFileCannotStateIsNotTheSame) {
  const std::string flag = "\"apply_residual_connection_post_layernorm\": ";
  EXPECT_EQ(compared_with_converted("bloom", flag + "false", flag + "true").agreement, Agreement::undecided);
  const std::string activation = "\"hidden_act\": ";
  EXPECT_EQ(compared_with_converted("olmo3", activation + "\"silu\"", activation + "\"relu\"").agreement,
            Agreement::different);
  // flash-linear-attention takes RWKV-7's activation from the field; llama.cpp has one.
  EXPECT_EQ(compared_with_converted("rwkv7", activation + "\"sqrelu\"", activation + "\"relu\"").agreement,
            Agreement::undecided);
}

// How experts are chosen and weighed is stated in both forms, the activation in one.
TEST(RewriteCompareGguf, GlmWithOtherExpertsIsDifferent) {
  for (const auto& [field, value, other] : {std::tuple{"hidden_act", "\"silu\"", "\"relu\""},
                                            {"norm_topk_prob", "true", "false"},
                                            {"routed_scaling_factor", "1.0", "1.51"},
                                            {"num_experts_per_tok", "2", "3"}}) {
    const std::string key = std::string("\"") + field + "\": ";
    EXPECT_EQ(compared_with_converted("glm4_moe", key + value, key + other).agreement, Agreement::different)
        << field;
  }
  const std::string groups = "\"n_group\": ";
  EXPECT_NE(compared_with_converted("glm4_moe", groups + "1", groups + "2").agreement, Agreement::same);
}

TEST(RewriteCompareGguf, AnotherFamilyIsRefused) {
  const files::Checkpoint llama(std::filesystem::path(NORMSCOPE_SOURCE_DIR) / "tests/models/gguf/llama.gguf");
  const files::Checkpoint gpt2(fixture("gpt2"));
  const std::string error = error_of(ErrorCode::Unsupported, [&] {
    static_cast<void>(compare(llama, models::describe(llama), gpt2, models::describe(gpt2)));
  });
  EXPECT_NE(error.find("expected one known architecture"), std::string::npos) << error;
}

}  // namespace
}  // namespace normscope::rewrite
