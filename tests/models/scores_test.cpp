#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/tiny_models.hpp"
#include "support/fixtures.hpp"
#include "support/scratch.hpp"

namespace normscope::models {
namespace {

using test::LlamaSizes;
using test::notes_mention;
using test::Synthetic;
using test::tiny_llama;

Model with_fields(const std::string& fields, const LlamaSizes& sizes = {}) {
  return tiny_llama(sizes)
      .config(R"({"hidden_size": 8, "num_attention_heads": 1, "head_dim": 16, "rope_theta": 10000,
                  "tie_word_embeddings": true, "rms_norm_eps": 1e-6, )" +
              fields + "}")
      .describe();
}

// What heads and vocabulary say is not modelled, as "heads | vocabulary".
std::string refused(const Model& model) {
  return model.heads.at(0).not_modelled + " | " +
         (model.vocabulary ? model.vocabulary->not_modelled : "none");
}

// Cohere2VisionForConditionalGeneration, run by scripts/model_oracle/variants.py, gives logits that are not
// multiplied by "logit_scale", as Cohere2ForCausalLM's are.
TEST(Logits, OfAModelAroundATextModelMayNotBeScaledAsItsOwn) {
  const auto why = [](const std::string& around, const char* fixture) {
    const std::filesystem::path source = test::fixture(fixture);
    nlohmann::json config = nlohmann::json::parse(std::ifstream(source / "config.json"));
    if (!around.empty()) config = {{"model_type", around}, {"text_config", config}};
    const test::Scratch folder;
    std::filesystem::copy_file(source / "model.safetensors", folder / "model.safetensors");
    std::ofstream(folder / "config.json") << config.dump();
    return describe(files::Checkpoint(folder.folder())).vocabulary->not_modelled;
  };
  EXPECT_EQ(why("", "cohere2"), "");
  EXPECT_NE(why("cohere2_vision", "cohere2"), "");
  EXPECT_NE(why("llava", "gemma2"), "") << "a cap";
  EXPECT_EQ(why("llava", "llama"), "") << "neither";
}

Synthetic tiny_gpt2(const std::string& fields) {
  Synthetic file;
  file.add("wte.weight", {11, 8}).add("wpe.weight", {16, 8}).norm("ln_f", 8);
  for (const char* layer : {"h.0.", "h.1.", "h.2."}) {
    const std::string at = layer;
    file.norm(at + "ln_1", 8).norm(at + "ln_2", 8);
    file.add(at + "attn.c_attn.weight", {8, 24}).add(at + "attn.c_attn.bias", {24});
    file.linear(at + "attn.c_proj", 8, 8);
    file.add(at + "mlp.c_fc.weight", {8, 32}).add(at + "mlp.c_fc.bias", {32});
    file.add(at + "mlp.c_proj.weight", {32, 8}).add(at + "mlp.c_proj.bias", {8});
  }
  return file.config(R"({"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 3)" + fields + "}");
}

TEST(Scores, OfGpt2FollowItsTwoSwitches) {
  EXPECT_EQ(tiny_gpt2("").describe().heads[0].scale, 0.5);
  const Model plain = tiny_gpt2(R"(, "scale_attn_weights": false)").describe();
  EXPECT_EQ(plain.heads[5].scale, 1.0);
  EXPECT_EQ(refused(plain), " | ");
  const Model layered = tiny_gpt2(R"(, "scale_attn_by_inverse_layer_idx": true)").describe();
  EXPECT_EQ(layered.heads[0].scale, 0.5);
  EXPECT_EQ(layered.heads[2].scale, 0.25);
  EXPECT_EQ(layered.heads[5].scale, 0.5 / 3.0);
}

TEST(Scores, OfGraniteTakeItsMultipliers) {
  const Model model = with_fields(R"("model_type": "granite", "attention_multiplier": 0.0078125,
      "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 8.0)");
  EXPECT_EQ(model.architecture, "granite");
  EXPECT_EQ(refused(model), " | ");
  EXPECT_EQ(model.heads[0].scale, 0.0078125);
  EXPECT_EQ(model.vocabulary->logit_scale, 0.125);
  EXPECT_TRUE(notes_mention(model, "multiplied by 0.22"));
  EXPECT_EQ(with_fields(R"("model_type": "granite")").heads[0].scale, 1.0) << "the published default";
}

// Gemma 2: norms around both branches, none of queries and keys.
Synthetic tiny_gemma(std::uint64_t layers, bool head_norms) {
  Synthetic file = tiny_llama({.layers = layers});
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    for (const char* name : {"pre_feedforward_layernorm", "post_feedforward_layernorm"})
      file.add(at + name + ".weight", {8});
    if (head_norms) file.add(at + "self_attn.q_norm.weight", {16}).add(at + "self_attn.k_norm.weight", {16});
  }
  return file;
}

TEST(Scores, OfGemma2AreCappedAndSeeWindowsInEveryOtherLayer) {
  const std::string common = R"({"model_type": "gemma2", "hidden_size": 8, "num_attention_heads": 1,
                                 "head_dim": 16, "rope_theta": 10000, "sliding_window": 4096)";
  const Model stated = tiny_gemma(3, false)
                           .config(common + R"(, "query_pre_attn_scalar": 144, "attn_logit_softcapping": 50.0,
                                               "final_logit_softcapping": 30.0})")
                           .describe();
  EXPECT_EQ(refused(stated), " | ");
  EXPECT_EQ(stated.heads[0].scale, 1.0 / 12.0);
  EXPECT_EQ(stated.heads[0].soft_cap, 50.0);
  EXPECT_EQ(stated.heads[0].window, 4096u);
  EXPECT_EQ(stated.heads[1].window, std::nullopt);
  EXPECT_EQ(stated.heads[2].window, 4096u);
  EXPECT_EQ(stated.vocabulary->soft_cap, 30.0);

  const Model silent = tiny_gemma(1, false).config(common + "}").describe();
  EXPECT_EQ(silent.heads[0].scale, 1.0 / 16.0);
  EXPECT_EQ(silent.heads[0].soft_cap, 50.0);
  EXPECT_EQ(silent.vocabulary->soft_cap, 30.0);
  EXPECT_TRUE(notes_mention(silent, "final_logit_softcapping 30 is assumed"));

  const Model uncapped =
      tiny_gemma(1, false)
          .config(common + R"(, "attn_logit_softcapping": null, "final_logit_softcapping": null})")
          .describe();
  EXPECT_EQ(uncapped.heads[0].soft_cap, 0.0);
  EXPECT_EQ(uncapped.vocabulary->soft_cap, 0.0);
}

// Gemma 3's class keeps the soft cap of scores without applying it; Gemma 1's reads none of the three.
TEST(Scores, OfGemmaHaveOnlyTheFieldsThatTheClassReads) {
  const std::string common =
      R"("hidden_size": 8, "num_attention_heads": 1, "head_dim": 16, "rope_theta": 10000,
      "attn_logit_softcapping": 0.5, "final_logit_softcapping": 3.0, "query_pre_attn_scalar": 64})";
  const Model third = tiny_gemma(1, true).config(R"({"model_type": "gemma3_text", )" + common).describe();
  EXPECT_EQ(refused(third), " | ");
  EXPECT_EQ(third.heads[0].soft_cap, 0.0);
  EXPECT_EQ(third.heads[0].scale, 0.125);
  EXPECT_EQ(third.vocabulary->soft_cap, 3.0);
  const Model first = tiny_llama().config(R"({"model_type": "gemma", )" + common).describe();
  EXPECT_EQ(first.architecture, "gemma");
  EXPECT_EQ(refused(first), " | ");
  EXPECT_EQ(first.heads[0].soft_cap, 0.0);
  EXPECT_EQ(first.heads[0].scale, 0.25);
  EXPECT_EQ(first.vocabulary->soft_cap, 0.0);
}

TEST(Scores, OfGemma3SeeWindowsInFiveOfSixLayers) {
  const Model model = tiny_gemma(6, true)
                          .config(R"({"model_type": "gemma3_text", "hidden_size": 8, "num_attention_heads": 1,
                                      "head_dim": 16, "sliding_window": 512, "query_pre_attn_scalar": 16})")
                          .describe();
  EXPECT_EQ(model.heads[0].window, 512u);
  EXPECT_EQ(model.heads[4].window, 512u);
  EXPECT_EQ(model.heads[5].window, std::nullopt);
  EXPECT_EQ(model.heads[0].soft_cap, 0.0);
}

TEST(Scores, SeeWindowsWhereTheModelTypeSays) {
  const LlamaSizes two = {.layers = 2};
  const auto window = [&](const std::string& fields, std::size_t head = 0) {
    const Model model = with_fields(fields, two);
    EXPECT_EQ(refused(model), " | ") << fields;
    return model.heads[head].window.value_or(0);
  };
  EXPECT_EQ(window(R"("model_type": "mistral", "sliding_window": 4096)"), 4096u);
  EXPECT_EQ(window(R"("model_type": "mistral", "sliding_window": null)"), 0u);
  const std::string qwen = R"("model_type": "qwen2", "sliding_window": 64, )";
  EXPECT_EQ(window(qwen + R"("use_sliding_window": false, "max_window_layers": 1)", 1), 0u);
  EXPECT_EQ(window(qwen + R"("use_sliding_window": true, "max_window_layers": 1)", 0), 0u);
  EXPECT_EQ(window(qwen + R"("use_sliding_window": true, "max_window_layers": 1)", 1), 64u);
  const std::string kinds =
      R"("use_sliding_window": true, "layer_types": ["sliding_attention", "full_attention"])";
  EXPECT_EQ(window(qwen + kinds, 0), 64u);
  EXPECT_EQ(window(qwen + kinds, 1), 0u);
}

TEST(Scores, OfSmolLm3TurnInThreeOfFourLayers) {
  const LlamaSizes four = {.layers = 4};
  const Model told = with_fields(R"("model_type": "smollm3", "no_rope_layers": [1, 0, 1, 1])", four);
  EXPECT_TRUE(told.heads[0].rotary.has_value());
  EXPECT_FALSE(told.heads[1].rotary.has_value());
  const Model silent = with_fields(R"("model_type": "smollm3")", four);
  EXPECT_TRUE(silent.heads[2].rotary.has_value());
  EXPECT_FALSE(silent.heads[3].rotary.has_value());
}

// One norm a layer; pairs of neighbours turn; logits are scaled.
TEST(Scores, OfCohereAndItsLogits) {
  Synthetic file = tiny_llama();
  file.remove("model.layers.0.post_attention_layernorm.weight");
  const std::string common = R"({"hidden_size": 8, "num_attention_heads": 1, "head_dim": 16,
                                 "layer_norm_eps": 1e-5, "rope_theta": 10000, )";
  const Model model =
      file.config(common + R"("model_type": "cohere", "logit_scale": 0.25, "use_qk_norm": false})")
          .describe();
  EXPECT_EQ(model.architecture, "cohere");
  EXPECT_EQ(refused(model), " | ");
  EXPECT_EQ(model.norms[0].kind, NormKind::layer);
  EXPECT_EQ(model.vocabulary->logit_scale, 0.25);
  EXPECT_TRUE(model.heads[0].rotary->interleaved);
  EXPECT_EQ(test::names(model.norms[0].readers).size(), 5u);
  EXPECT_EQ(file.config(common + R"("model_type": "cohere"})").describe().vocabulary->logit_scale, 0.0625);
  EXPECT_EQ(refused(file.config(common + R"("model_type": "cohere", "use_qk_norm": true})").describe()),
            "\"model.layers.0.self_attn.q_norm\", which is missing; "
            "\"model.layers.0.self_attn.k_norm\", which is missing | ");
  const Model second = file.config(common + R"("model_type": "cohere2", "sliding_window": 64,
                                               "layer_types": ["full_attention"]})")
                           .describe();
  EXPECT_FALSE(second.heads[0].rotary.has_value());
  EXPECT_EQ(second.heads[0].window, std::nullopt);
}

TEST(Scores, OfStableLmStandBehindLayerNormsAndTurnAQuarter) {
  Synthetic file = tiny_llama();
  for (const char* norm :
       {"model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm", "model.norm"})
    file.add(std::string(norm) + ".bias", {8});
  const std::string common = R"({"hidden_size": 8, "num_attention_heads": 1, "head_dim": 16,
                                 "layer_norm_eps": 1e-5, "rope_theta": 10000, "tie_word_embeddings": true, )";
  const Model model = file.config(common + R"("model_type": "stablelm", "use_qkv_bias": true})").describe();
  EXPECT_EQ(model.architecture, "stablelm");
  EXPECT_EQ(refused(model), " | ");
  for (const Norm& norm : model.norms) {
    EXPECT_EQ(norm.kind, NormKind::layer);
    EXPECT_TRUE(norm.bias.has_value());
  }
  EXPECT_EQ(model.heads[0].rotary->dims, 4u);
  EXPECT_EQ(refused(file.config(common + R"("model_type": "stablelm", "qk_layernorm": true})").describe()),
            "\"model.layers.0.self_attn.q_layernorm.norms.0\", which is missing; "
            "\"model.layers.0.self_attn.k_layernorm.norms.0\", which is missing | ");
  // Its tensors under another name are not taken for an RMSNorm, and nothing is proved about them.
  const Model other = file.config(common + R"("model_type": "llama"})").describe();
  EXPECT_EQ(other.norms[0].kind, NormKind::layer);
  EXPECT_TRUE(notes_mention(other, "RMSNorm has none"));
  EXPECT_NE(other.heads[0].not_modelled, "");
  EXPECT_NE(other.vocabulary->not_modelled, "");

  file.remove("model.layers.0.post_attention_layernorm.weight");
  file.remove("model.layers.0.post_attention_layernorm.bias");
  const Model parallel =
      file.config(common + R"("model_type": "stablelm", "use_parallel_residual": true})").describe();
  EXPECT_TRUE(parallel.missing.empty());
  EXPECT_EQ(parallel.norms[0].readers.size(), 5u) << "attention and MLP read one norm";
}

TEST(NotModelled, NamesTheFieldThatChangesScoresOrLogits) {
  const std::string llama = R"("model_type": "llama", )";
  EXPECT_EQ(refused(with_fields(llama + R"("sliding_window": 128)")), "sliding_window: 128 | ");
  EXPECT_EQ(refused(with_fields(llama + R"("alibi": true)")), "alibi: true | ");
  EXPECT_EQ(refused(with_fields(llama + R"("position_embedding_type": "relative_key")")),
            "position_embedding_type: relative_key | ");
  EXPECT_EQ(refused(with_fields(llama + R"("attn_logit_softcapping": 50)")), "attn_logit_softcapping: 50 | ");
  EXPECT_EQ(refused(with_fields(llama + R"("clip_qkv": 8)")), "clip_qkv: 8 | ");
  EXPECT_EQ(refused(with_fields(llama + R"("layer_types": ["sliding_attention"])")),
            "layer_types: sliding_attention | ");
  EXPECT_EQ(refused(with_fields(llama + R"("logit_scale": 0.5)")), " | logit_scale: 0.5");
  EXPECT_EQ(refused(with_fields(llama + R"("lm_head_multiplier": 0.5)")), " | lm_head_multiplier: 0.5");
  EXPECT_EQ(refused(with_fields(llama + R"("final_logit_softcapping": 30)")),
            " | final_logit_softcapping: 30");
  EXPECT_EQ(refused(with_fields(llama + R"("rope_interleaved": true)")), "rope_interleaved: true | ");
  EXPECT_EQ(refused(with_fields(R"("model_type": "gemma", "use_bidirectional_attention": true)")),
            "use_bidirectional_attention: true | ");
}

TEST(NotModelled, AFieldThatNobodyKnowsIsNotHarmless) {
  EXPECT_EQ(refused(with_fields(R"("model_type": "llama", "width_scale": 0.5)")),
            "width_scale: 0.5 | width_scale: 0.5");
  EXPECT_EQ(refused(with_fields(R"("model_type": "llama", "quantization_config": {"bits": 8})")),
            "quantization_config: an object | quantization_config: an object");
  EXPECT_EQ(refused(with_fields(R"("model_type": "llama", "auto_map": {"AutoModel": "a.B"})")),
            "auto_map: an object | auto_map: an object")
      << "code of its own";
  EXPECT_EQ(refused(with_fields(R"("model_type": "llama", "rotary_emb_base": 100)")),
            "rotary_emb_base: 100 | ")
      << "another family's name for the base";
  EXPECT_EQ(refused(with_fields(R"("model_type": "llama", "pruned_heads": {"0": [0]})")),
            "pruned_heads: an object | pruned_heads: an object");
}

TEST(NotModelled, NeutralValuesChangeNothing) {
  EXPECT_EQ(
      refused(with_fields(R"("model_type": "llama", "rope_scaling": null, "logit_scale": 1.0, "alibi": false,
      "logits_scaling": 1, "position_embedding_type": "absolute", "pruned_heads": {}, "clip_qkv": null,
      "attn_logit_softcapping": null, "rope_interleaved": false, "use_mrope": false, "quantization_config": null,
      "_name_or_path": "x", "attention_dropout": 0.1, "torch_dtype": "bfloat16", "bos_token_id": [1, 2],
      "is_llama_config": true, "transformers.js_config": {"dtype": "q4"}, "task_specific_params": {"a": 1}, "id2label": {"0": "x"})")),
      " | ");
}

TEST(NotModelled, AnotherModelTypeBorrowsNoWiring) {
  const Model model = with_fields(R"("model_type": "minicpm")");
  EXPECT_EQ(model.architecture, "unknown");
  EXPECT_EQ(model.title, "unknown architecture (model_type minicpm)");
  ASSERT_EQ(model.norms.size(), 3u) << "its norms are named all the same";
  for (const Norm& norm : model.norms) {
    EXPECT_TRUE(norm.readers.empty() && norm.writers.empty() && !norm.connections_known &&
                !norm.readers_known);
    EXPECT_TRUE(norm.kind_is_assumed);
    EXPECT_EQ(norm.eps_source, Source::assumed) << "the class may read another field";
    EXPECT_EQ(norm.placement, Placement::unknown);
  }
  EXPECT_TRUE(model.heads.empty() && !model.vocabulary && !model.decoder);
  EXPECT_EQ(why_no_logits(model), "not modelled: unknown architecture (model_type minicpm)");
  EXPECT_EQ(why_no_heads(model), why_no_logits(model));
  EXPECT_TRUE(
      notes_mention(model, "model_type minicpm is not known. Its tensors are named as those of Llama"));
  // The tower's own type decides, whatever the type of the whole model.
  const auto wrapped = [](const std::string& type) {
    return tiny_llama({.prefix = "model.language_model."})
        .config(R"({"model_type": "llava", "tie_word_embeddings": true, "image_token_index": 7, "text_config":
                    {"model_type": ")" +
                type +
                R"(", "hidden_size": 8, "num_attention_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-6}})")
        .describe();
  };
  EXPECT_EQ(refused(wrapped("llama")), " | ");
  EXPECT_EQ(wrapped("minicpm").architecture, "unknown");
}

TEST(NotModelled, AFileThatMayBeOfAnotherFamilyHasNothingProved) {
  const test::Scratch scratch;
  std::filesystem::copy_file(test::fixture("gemma") / "model.safetensors", scratch / "model.safetensors");
  const files::Checkpoint checkpoint(scratch / "model.safetensors");
  const Model model = describe(checkpoint, {.heads = 4});
  EXPECT_EQ(model.architecture, "llama");
  const std::string why = "could be Gemma 1";
  EXPECT_NE(why_no_heads(model).find(why), std::string::npos) << why_no_heads(model);
  ASSERT_FALSE(model.norms.empty());
  for (const Norm& norm : model.norms) {
    EXPECT_TRUE(norm.kind_is_assumed);
    for (const Linear& reader : norm.readers) EXPECT_NE(reader.not_modelled.find(why), std::string::npos);
  }
  const Model stated = describe(checkpoint, {.architecture = "llama", .heads = 4});
  EXPECT_EQ(why_no_heads(stated), "");
  EXPECT_FALSE(stated.norms.front().kind_is_assumed);
}

TEST(NotModelled, KindsOfMptAreThoseOfItsConfiguration) {
  const test::Scratch scratch;
  std::filesystem::copy_file(test::fixture("mpt") / "model.safetensors", scratch / "model.safetensors");
  const Model model = describe(files::Checkpoint(scratch / "model.safetensors"));
  EXPECT_EQ(model.architecture, "mpt");
  EXPECT_NE(why_no_logits(model).find("norm_type"), std::string::npos) << why_no_logits(model);
}

// The description of a fixture with one field of its configuration set to other JSON.
Model fixture_with(const std::string& name, const std::string& field, const std::string& value) {
  const test::Scratch scratch;
  const std::filesystem::path folder = scratch / "model";
  std::filesystem::copy(test::fixture(name), folder);
  std::ifstream file(folder / "config.json");
  nlohmann::json config = nlohmann::json::parse(file);
  config[field] = nlohmann::json::parse(value);
  std::ofstream(folder / "config.json") << config;
  return describe(files::Checkpoint(folder));
}

// Published files of EXAONE state their pattern as "LLLG".
TEST(Scores, OfExaoneSeeTheWindowsOfTheListBesideAPatternOfLetters) {
  for (const char* const name : {"exaone4", "exaone_moe"}) {
    const Model model = fixture_with(name, "sliding_window_pattern", R"("LG")");
    EXPECT_EQ(refused(model), " | ") << name;
    EXPECT_EQ(model.heads.front().window, 4u) << name;
    EXPECT_EQ(model.heads.back().window, std::nullopt) << name;
    EXPECT_TRUE(model.heads.front().rotary && !model.heads.back().rotary) << name;
  }
}

TEST(NotModelled, NamesWhatActsOnScoresBehindNormsWithoutGain) {
  const Model all = fixture_with("gemma4", "use_bidirectional_attention", R"("all")");
  EXPECT_EQ(refused(all), "use_bidirectional_attention: all | ");
  const Model vision = fixture_with("gemma4", "use_bidirectional_attention", R"("vision")");
  EXPECT_EQ(refused(vision), " | ");
  EXPECT_TRUE(notes_mention(vision, "see later tokens of the same image"));
  const Model own =
      fixture_with("gemma4", "per_layer_config", R"({"1": {"head_dim": 8, "sliding_window": 2}})");
  EXPECT_EQ(refused(own), "per_layer_config.1.sliding_window: 2 | ");
  const Model shared = fixture_with("gemma3n", "num_kv_shared_layers", "1");
  EXPECT_EQ(shared.heads.back().not_modelled, "num_kv_shared_layers: 1");
  EXPECT_EQ(fixture_with("gemma3n", "attn_scale", "0.5").heads[0].not_modelled, "attn_scale: 0.5");
  // The norm behind the rotation undoes a factor, but for its eps.
  const Model yarn = fixture_with("nanochat", "rope_parameters",
                                  R"({"rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0})");
  EXPECT_EQ(refused(yarn), "a factor of \"rope_parameters\" before the norms of queries and keys | ");
}

TEST(NormsWithoutGain, HaveTheKindWidthAndEpsOfTheirClass) {
  const auto norm = [](const Model& model, const std::string& name) {
    const Norm* const found = find_norm(model, name);
    EXPECT_NE(found, nullptr) << name;
    EXPECT_TRUE(!found->gain && !found->bias) << name;
    return fmt::format("{} of {}, eps {}", facts(found->kind).name, found->width, found->eps);
  };
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"nanochat", "model.norm"},
      {"nanochat", "model.layers.1.self_attn.q_norm"},
      {"diffllama", "model.layers.1.self_attn.groupnorm"},
      {"gemma3n", "model.layers.1.self_attn.v_norm"},
      {"gemma4", "model.layers.1.self_attn.v_norm"},
      {"gemma4_moe", "model.layers.1.router.norm"}};
  const std::vector<const char*> expected = {"rms of 24, eps 0.002", "rms of 6, eps 0.002",
                                             "rms of 12, eps 0.002", "rms of 6, eps 0.002",
                                             "rms of 8, eps 0.002",  "rms of 16, eps 0.002"};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto [fixture, name] = cases[i];
    EXPECT_EQ(norm(fixture_with(fixture, "rms_norm_eps", "0.002"), name), expected[i]) << fixture;
  }
}

TEST(NotModelled, TensorsBesideTheProjectionsMayChangeTheScores) {
  Synthetic file = tiny_llama();
  file.config(R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 1, "head_dim": 16,
                  "rope_theta": 10000, "tie_word_embeddings": false, "rms_norm_eps": 1e-6})");
  file.add("lm_head.weight", {11, 8});
  EXPECT_EQ(refused(file.describe()), " | ");
  file.add("model.layers.0.self_attn.sinks", {1});
  EXPECT_EQ(refused(file.describe()), "tensor \"model.layers.0.self_attn.sinks\" | ");
  file.remove("model.layers.0.self_attn.sinks").add("lm_head.weight_scale", {11});
  EXPECT_EQ(refused(file.describe()), " | tensor \"lm_head.weight_scale\"");
}

TEST(Towers, TakeTheirOwnSectionsEps) {
  Synthetic file = tiny_llama({.prefix = "language_model.model."});
  file.norm("vision_tower.vision_model.post_layernorm", 8).norm("multi_modal_projector.norm", 8);
  const auto config = [](const std::string& vision) {
    return R"({"model_type": "llava", "text_config": {"model_type": "llama", "hidden_size": 8,
               "num_attention_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-6},
               "vision_config": {)" +
           vision + "}}";
  };
  const Model stated =
      file.config(config(R"("model_type": "clip_vision_model", "layer_norm_eps": 1e-4)")).describe();
  EXPECT_EQ(stated.architecture, "llama");
  EXPECT_EQ(test::norm_named(stated, "language_model.model.norm").eps, 1e-6);
  const Norm& vision = test::norm_named(stated, "vision_tower.vision_model.post_layernorm");
  EXPECT_EQ(vision.eps, 1e-4);
  EXPECT_EQ(vision.eps_source, Source::config);
  EXPECT_EQ(test::norm_named(stated, "multi_modal_projector.norm").eps_source, Source::assumed);
  const Model silent = file.config(config(R"("model_type": "siglip_vision_model")")).describe();
  EXPECT_EQ(test::norm_named(silent, "vision_tower.vision_model.post_layernorm").eps, 1e-6);
  EXPECT_EQ(test::norm_named(silent, "vision_tower.vision_model.post_layernorm").eps_source, Source::assumed);
}

TEST(Towers, OfAnUnknownTypeAreSaidNotToBeModelled) {
  Synthetic file = tiny_llama({.prefix = "language_model.model."});
  file.norm("vision_tower.norm", 8);
  const auto described = [&](const char* type) {
    return file
        .config(
            std::string(R"({"model_type": "llava", "text_config": {"model_type": "llama", "hidden_size": 8,
                "num_attention_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-6}, "vision_config": {"model_type": ")") +
            type + "\"}}")
        .describe();
  };
  const Model model = described("nothing_known");
  EXPECT_EQ(model.architecture, "llama");
  EXPECT_TRUE(
      notes_mention(model, "the vision tower is not modelled: model_type nothing_known is not known"));
}

TEST(Towers, AVisionTransformerTakesHeadsAndEpsFromItsSection) {
  Synthetic vit;
  vit.add("vision_model.embeddings.cls_token", {1, 1, 8});
  vit.add("vision_model.embeddings.position_embeddings", {1, 5, 8});
  vit.add("vision_model.embeddings.patch_embeddings.projection.weight", {8, 3, 2, 2});
  vit.add("vision_model.embeddings.patch_embeddings.projection.bias", {8});
  const std::string layer = "vision_model.encoder.layer.0.";
  vit.norm(layer + "layernorm_before", 8)
      .norm(layer + "layernorm_after", 8)
      .norm("vision_model.layernorm", 8);
  for (const char* part : {"query", "key", "value"}) vit.linear(layer + "attention.attention." + part, 8, 8);
  vit.linear(layer + "attention.output.dense", 8, 8).linear(layer + "intermediate.dense", 32, 8);
  vit.linear(layer + "output.dense", 8, 32);
  const Model model = vit.config(R"({"model_type": "vision-text-dual-encoder",
      "text_config": {"model_type": "bert", "num_attention_heads": 8, "hidden_size": 16, "layer_norm_eps": 1e-3},
      "vision_config": {"model_type": "vit", "num_attention_heads": 2, "hidden_size": 8, "layer_norm_eps": 1e-7}})")
                          .describe();
  EXPECT_EQ(model.architecture, "vit");
  EXPECT_EQ(model.heads.size(), 2u);
  EXPECT_EQ(model.norms[0].eps, 1e-7);
  EXPECT_EQ(model.heads[0].not_modelled, "");
}

}  // namespace
}  // namespace normscope::models
