#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "models/tiny_models.hpp"

/// What stands in the way of claims about a model, and that no value is read past it.
namespace normscope::models {
namespace {

using test::Synthetic;
using test::tiny_llama;

const std::string query = "model.layers.0.self_attn.q_proj";

Synthetic llama(const std::string& fields = "") {
  Synthetic file = tiny_llama({.heads = 1, .key_value_heads = 1, .head_dim = 8});
  file.add("lm_head.weight", {11, 8});
  return file.config(R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 1, "head_dim": 8,
      "rope_theta": 10000, "rms_norm_eps": 1e-6, "tie_word_embeddings": false)" +
                     fields + "}");
}

/// The query's map among the readers of the first norm.
const Linear& query_of(const Model& model) { return model.norms.at(0).readers.at(0); }

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Unsupported) << error.what();
    return error.what();
  }
  return "none";
}

/// Reading any value of the map is refused.
testing::AssertionResult is_not_read(const files::Checkpoint& file, const Linear& map) {
  for (const std::string& text : {refusal([&] { static_cast<void>(read_weight(file, map, 0, 1)); }),
                                  refusal([&] { static_cast<void>(read_bias(file, map)); })}) {
    if (text.find("is not modelled: ") == std::string::npos) return testing::AssertionFailure() << text;
  }
  return testing::AssertionSuccess();
}

TEST(Gate, AnAdapterBelongsToItsMapAndToWhatIsComputedFromIt) {
  Synthetic file = llama();
  file.add(query + ".lora_A.default.weight", {2, 8}).add(query + ".lora_B.default.weight", {8, 2});
  const files::Checkpoint opened = file.open();
  const Model model = describe(opened);
  const std::string what = "tensor \"" + query + ".lora_A.default.weight\"";
  EXPECT_EQ(query_of(model).not_modelled, what);
  EXPECT_TRUE(is_not_read(opened, query_of(model)));
  EXPECT_EQ(model.norms[0].readers.at(1).not_modelled, "") << "the keys have no adapter";
  EXPECT_NO_THROW(static_cast<void>(read_weight(opened, model.norms[0].readers.at(1), 0, 1)));
  EXPECT_EQ(why_no_scores(model.heads.at(0)), "not modelled: " + what);
  EXPECT_EQ(why_no_heads(model), "not modelled: " + what);
  EXPECT_EQ(why_no_logits(model), "");
  EXPECT_EQ(model.decoder->not_modelled, what);
}

TEST(Gate, ScalesBelongToTheMapsThatTheyScale) {
  for (const std::string suffix :
       {"weight_scale", "weight_scale_inv", "scale", "input_scale", "weight.absmax", "SCB"}) {
    const std::string up = "model.layers.0.mlp.up_proj.";
    Synthetic file = llama();
    file.add(up + suffix, {1}).add("lm_head." + suffix, {1});
    const Model model = file.describe();
    EXPECT_EQ(query_of(model).not_modelled, "");
    EXPECT_EQ(model.norms.at(1).readers.at(1).not_modelled, "tensor \"" + up + suffix + "\"");
    EXPECT_EQ(why_no_logits(model), "not modelled: tensor \"lm_head." + suffix + "\"");
    EXPECT_EQ(why_no_heads(model), "");
  }
}

TEST(Gate, ATensorBesideAGainConcernsAllThatReadsTheNorm) {
  Synthetic file = llama();
  file.add("model.layers.0.input_layernorm.weight_scale", {1});
  const files::Checkpoint opened = file.open();
  const Model model = describe(opened);
  const std::string what = "tensor \"model.layers.0.input_layernorm.weight_scale\"";
  EXPECT_EQ(model.norms.at(0).not_modelled, what);
  EXPECT_NE(
      refusal([&] { static_cast<void>(read_norm(opened, model.norms[0])); }).find("is not modelled: " + what),
      std::string::npos);
  EXPECT_NO_THROW(static_cast<void>(read_norm(opened, model.norms[1])));
  EXPECT_EQ(why_no_heads(model), "not modelled: " + what);
  EXPECT_EQ(why_no_logits(model), "");
  file.remove("model.layers.0.input_layernorm.weight_scale").add("model.norm.weight_scale", {1});
  EXPECT_EQ(why_no_logits(file.describe()), "not modelled: tensor \"model.norm.weight_scale\"");
}

TEST(Gate, WhatIsLeftOfAMapUnderAnotherNameIsThatMap) {
  for (const std::string name : {"base_layer.weight", "original_module.weight", "weight_v",
                                 "parametrizations.weight.original1", "weight_packed"}) {
    Synthetic file = llama();
    file.remove(query + ".weight").add(query + "." + name, {8, 8});
    const files::Checkpoint opened = file.open();
    const Model model = describe(opened);
    EXPECT_TRUE(model.missing.empty()) << name;
    EXPECT_EQ(query_of(model).weight.tensor, query + "." + name);
    EXPECT_EQ(query_of(model).out, 8u);
    EXPECT_TRUE(is_not_read(opened, query_of(model)));
    EXPECT_EQ(why_no_heads(model), "not modelled: tensor \"" + query + "." + name + "\"");
  }
}

TEST(Gate, PackedWeightsAreQuantizedAndOfNoWrongShape) {
  struct Packing {
    const char* name;
    std::vector<std::uint64_t> shape;
    Dtype dtype;
    const char* beside;
  };
  for (const Packing& packing :
       {Packing{"weight", {8, 1}, Dtype::U32, "scales"},
        Packing{"weight", {32, 1}, Dtype::U8, "weight.absmax"},
        Packing{"qweight", {1, 8}, Dtype::I32, "qzeros"}, Packing{"qweight", {8, 1}, Dtype::I32, "scales"}}) {
    Synthetic file = llama();
    file.remove(query + ".weight").add(query + "." + packing.name, packing.shape, packing.dtype);
    file.add(query + "." + packing.beside, {8});
    const files::Checkpoint opened = file.open();
    const Model model = describe(opened);
    EXPECT_EQ(query_of(model).not_modelled.substr(0, 19), "quantized weights: ");
    EXPECT_EQ(query_of(model).out, 8u);
    EXPECT_TRUE(is_not_read(opened, query_of(model)));
    EXPECT_NE(why_no_heads(model), "");
  }
  Synthetic table = llama();
  table.remove("model.embed_tokens.weight").add("model.embed_tokens.weight", {11, 1}, Dtype::U32);
  table.add("model.embed_tokens.scales", {11, 1}).add("model.embed_tokens.biases", {11, 1});
  EXPECT_EQ(table.describe().norms.at(0).writers.at(0).not_modelled.substr(0, 19), "quantized weights: ");
  Synthetic wrong = llama();
  wrong.remove(query + ".weight").add(query + ".weight", {8, 1}, Dtype::U32);
  EXPECT_THROW(static_cast<void>(wrong.describe()), Error)
      << "without anything beside it, its shape is wrong";
}

TEST(Gate, AFieldThatMayActAnywhereStandsInTheWayOfEverything) {
  const files::Checkpoint opened = llama(R"(, "width_scale": 0.5)").open();
  const Model model = describe(opened);
  EXPECT_EQ(model.not_modelled, "width_scale: 0.5");
  for (const Norm& norm : model.norms) {
    for (const Linear& map : norm.readers) EXPECT_TRUE(is_not_read(opened, map));
    for (const Linear& map : norm.writers) EXPECT_TRUE(is_not_read(opened, map));
  }
  EXPECT_EQ(why_no_logits(model), "not modelled: width_scale: 0.5");
  EXPECT_EQ(why_no_heads(model), "not modelled: width_scale: 0.5");
  EXPECT_EQ(llama(R"(, "quantization_config": {"quant_method": "gptq"})").describe().not_modelled,
            "quantization_config: gptq");
  EXPECT_EQ(llama(R"(, "alibi": true)").describe().not_modelled, "") << "it concerns scores alone";
}

TEST(Gate, ATieThatTheFileContradictsLeavesNoLogits) {
  Synthetic file = llama();
  file.config(R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 1, "head_dim": 8,
      "rope_theta": 10000, "rms_norm_eps": 1e-6, "tie_word_embeddings": true})");
  EXPECT_EQ(why_no_logits(file.describe()),
            "not modelled: tie_word_embeddings: true, beside an unembedding that is not the embedding");
  file.remove("lm_head.weight");
  EXPECT_EQ(why_no_logits(file.describe()), "");
}

std::vector<std::string> changes(const std::string& before, const std::string& after) {
  const Synthetic first = llama(before);
  const Synthetic second = llama(after);
  const files::Checkpoint a = first.open();
  const files::Checkpoint b = second.open();
  std::vector<std::string> result;
  for (const ChangedField& change : changed_fields(a, describe(a), b, describe(b))) {
    result.push_back(change.field + ": " + change.before + " -> " + change.after +
                     (change.described == Described::nowhere ? " ?" : ""));
  }
  return result;
}

TEST(ChangedFields, AreThoseThatMayHaveAnEffect) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(changes("", ""), Texts{});
  EXPECT_EQ(changes("", R"(, "_name_or_path": "x", "attention_dropout": 0.1, "eos_token_id": 3, "a": null)"),
            Texts{});
  EXPECT_EQ(changes(R"(, "hidden_act": "silu")", R"(, "hidden_act": "gelu")"),
            Texts{"hidden_act: \"silu\" -> \"gelu\""});
  EXPECT_EQ(changes(R"(, "factor": 1)", R"(, "factor": 1.0)"), Texts{}) << "one number";
  EXPECT_EQ(changes("", R"(, "odd": {"deep": 2})"), Texts{"odd.deep:  -> 2 ?"});
  EXPECT_EQ(changes(R"(, "num_hidden_layers": 1)", R"(, "num_hidden_layers": 2)"),
            Texts{"num_hidden_layers: 1 -> 2 ?"});
  EXPECT_EQ(changes(R"(, "pad_token_id": 1)", R"(, "pad_token_id": 2)"), Texts{"pad_token_id: 1 -> 2 ?"})
      << "where positions begin";
  EXPECT_EQ(changes(R"(, "image_token_id": 1)", R"(, "image_token_id": 2)"),
            Texts{"image_token_id: 1 -> 2 ?"})
      << "where an image stands";
}

}  // namespace
}  // namespace normscope::models
