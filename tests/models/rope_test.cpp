#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/files/checkpoint.hpp>

#include "models/tiny_models.hpp"
#include "support/fixtures.hpp"
#include "support/scratch.hpp"

namespace normscope::models {
namespace {

using test::notes_mention;
using test::Synthetic;
using test::tiny_llama;

Model rotary_llama(const std::string& fields, const test::LlamaSizes& sizes = {}) {
  return tiny_llama(sizes)
      .config(R"({"hidden_size": 8, "num_attention_heads": 1, "tie_word_embeddings": true, )" + fields +
              (sizes.head_dim == 16 ? R"(, "head_dim": 16})" : "}"))
      .describe();
}

void expect_frequencies(const Head& head, const std::vector<double>& expected) {
  ASSERT_TRUE(head.rotary.has_value());
  EXPECT_EQ(head.not_modelled, "");
  ASSERT_EQ(head.rotary->frequencies.size(), expected.size());
  for (std::size_t j = 0; j < expected.size(); ++j) {
    EXPECT_NEAR(head.rotary->frequencies[j], expected[j], 1e-12 * expected[j]) << j;
  }
}

// Expected frequencies: modeling_rope_utils of Hugging Face's transformers, evaluated in float64.

TEST(Rope, TakesItsBaseFromEitherSpelling) {
  const std::vector<double> expected = {
      1.0,  std::pow(1e6, -0.125), std::pow(1e6, -0.25), std::pow(1e6, -0.375),
      1e-3, std::pow(1e6, -0.625), std::pow(1e6, -0.75), std::pow(1e6, -0.875)};
  for (const char* fields :
       {R"("model_type": "llama", "rope_theta": 1e6, "max_position_embeddings": 64)",
        R"("model_type": "llama", "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
           "max_position_embeddings": 64)"}) {
    const Model model = rotary_llama(fields);
    expect_frequencies(model.heads[0], expected);
    EXPECT_EQ(model.heads[0].rotary->dims, 16u);
    EXPECT_FALSE(model.heads[0].rotary->interleaved);
    EXPECT_EQ(model.heads[0].rotary->score_factor, 1.0);
    EXPECT_EQ(model.heads[0].rotary->context, 64u);
    EXPECT_FALSE(notes_mention(model, "rotary"));
  }
}

TEST(Rope, SaysWhereItsBaseIsAssumed) {
  const Model model = rotary_llama(R"("model_type": "mistral")");
  EXPECT_NEAR(model.heads[0].rotary->frequencies[4], 1e-2, 1e-14);
  EXPECT_TRUE(notes_mention(model, "rotary base 10000 is assumed"));
  EXPECT_EQ(model.heads[0].rotary->context, 0u);
}

TEST(Rope, ScalesLinearly) {
  expect_frequencies(rotary_llama(R"("model_type": "llama", "rope_theta": 1e6,
                                    "rope_scaling": {"type": "linear", "factor": 8.0})")
                         .heads[0],
                     {0.125, 0.022228492625486537, 0.003952847075210474, 0.0007029266564879364, 0.000125,
                      2.2228492625486537e-05, 3.9528470752104736e-06, 7.029266564879364e-07});
}

TEST(Rope, StretchesLongWavesAsLlama3) {
  expect_frequencies(
      rotary_llama(R"("model_type": "llama", "rope_theta": 500000.0, "rope_scaling":
                                    {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
                                     "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})")
          .heads[0],
      {1.0, 0.19392274474868576, 0.03760603093086393, 0.00729266473721711, 0.00042955679655936837,
       8.570255489881478e-06, 1.661967467795309e-06, 3.2229329303788936e-07});
}

TEST(Rope, RampsBetweenFrequenciesAsYarnDoes) {
  const Head plain = rotary_llama(R"("model_type": "qwen2", "rope_theta": 1000000.0,
      "max_position_embeddings": 131072,
      "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})")
                         .heads[0];
  expect_frequencies(plain, {1.0, 0.1778279410038923, 0.03162277660168379, 0.004217559938927618, 0.0005,
                             4.4456985250973074e-05, 7.905694150420947e-06, 1.4058533129758728e-06});
  EXPECT_NEAR(plain.rotary->score_factor, 1.2964769927807063, 1e-12);
  EXPECT_EQ(plain.rotary->context, 131072u);

  const Head weighted = rotary_llama(R"("model_type": "llama", "max_position_embeddings": 163840,
      "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0,
                          "original_max_position_embeddings": 4096, "beta_fast": 16, "beta_slow": 2,
                          "truncate": false, "mscale": 1.0, "mscale_all_dim": 0.5}, "head_dim": 8)",
                                     {.head_dim = 8})
                            .heads[0];
  expect_frequencies(weighted, {1.0, 0.1, 0.005790104962447107, 2.5e-05});
  EXPECT_NEAR(weighted.rotary->score_factor, 1.3356933186232058, 1e-12);
  EXPECT_EQ(weighted.rotary->dims, 8u);

  const Head stated = rotary_llama(R"("model_type": "llama", "max_position_embeddings": 163840,
      "rope_scaling": {"rope_type": "yarn", "factor": 40.0, "attention_factor": 0.5,
                       "original_max_position_embeddings": 4096})")
                          .heads[0];
  EXPECT_EQ(stated.rotary->score_factor, 0.25);
}

// transformers from version 5 on reads the base inside the section, earlier versions the one beside it.
TEST(Rope, TakesItsBaseFromTheSectionOfItsScaling) {
  const std::string inside = R"("rope_scaling": {"rope_type": "default", "rope_theta": 1e4})";
  const Head head = rotary_llama(R"("model_type": "llama", )" + inside).heads[0];
  EXPECT_EQ(head.not_modelled, "");
  EXPECT_NEAR(head.rotary->frequencies[4], 1e-2, 1e-14);
  EXPECT_EQ(rotary_llama(R"("model_type": "llama", "rope_theta": 1e6, )" + inside).heads[0].not_modelled,
            "rope_theta: 1000000 beside 10000 in \"rope_scaling\"");
  EXPECT_EQ(
      rotary_llama(R"("model_type": "llama", "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
                            "rope_scaling": {"type": "linear", "factor": 2})")
          .heads[0]
          .not_modelled,
      "rope_scaling: an object");
}

// Llama's class rotates whole heads whatever the field says, other programs the part that it says.
TEST(Rope, OfAPartIsNotModelledWhereTheClassRotatesAll) {
  const auto refused = [](const std::string& fields) {
    return rotary_llama(R"("model_type": "llama", "rope_theta": 1e4, )" + fields).heads[0].not_modelled;
  };
  EXPECT_EQ(refused(R"("partial_rotary_factor": 0.5)"), "partial_rotary_factor: 0.5");
  EXPECT_EQ(refused(R"("rope_scaling": {"type": "linear", "factor": 2, "partial_rotary_factor": 0.5})"),
            "partial_rotary_factor: 0.5");
  EXPECT_EQ(refused(R"("partial_rotary_factor": 1.0)"), "");
}

TEST(Rope, ListsNoFrequenciesThatChangeWithTheContext) {
  const Model dynamic = rotary_llama(R"("model_type": "llama", "rope_theta": 10000.0,
      "max_position_embeddings": 64, "rope_scaling": {"type": "dynamic", "factor": 2.0})");
  EXPECT_TRUE(dynamic.heads[0].rotary->frequencies.empty());
  EXPECT_EQ(dynamic.heads[0].not_modelled, "");
  EXPECT_TRUE(notes_mention(dynamic, "rope_scaling: dynamic"));

  const Model longrope = rotary_llama(R"("model_type": "llama", "rope_theta": 10000.0,
      "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
      "rope_scaling": {"type": "longrope", "short_factor": [1, 1, 1, 1, 1, 1, 1, 1],
                       "long_factor": [2, 2, 2, 2, 2, 2, 2, 2]})");
  EXPECT_TRUE(longrope.heads[0].rotary->frequencies.empty());
  EXPECT_NEAR(longrope.heads[0].rotary->score_factor, 1.0 + std::log(32.0) / std::log(4096.0), 1e-14);
}

TEST(Rope, NamesTypesThatItDoesNotModel) {
  EXPECT_EQ(
      rotary_llama(R"("model_type": "llama", "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]})")
          .heads[0]
          .not_modelled,
      "rope_scaling: mrope");
  EXPECT_EQ(rotary_llama(R"("model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
                           "low_freq_factor": 1.0, "original_max_position_embeddings": 8192})")
                .heads[0]
                .not_modelled,
            "rope_scaling: llama3 without \"high_freq_factor\"");
}

TEST(Rope, RefusesParametersThatGiveNoFrequencies) {
  for (const char* fields : {R"("model_type": "llama", "rope_theta": 0)",
                             R"("model_type": "llama", "rope_scaling": {"type": "linear", "factor": 0})",
                             R"("model_type": "llama", "rope_theta": 1, "rope_scaling":
           {"type": "yarn", "factor": 4, "original_max_position_embeddings": 4096, "truncate": false})",
                             R"("model_type": "llama", "rope_scaling": {"type": 7})",
                             R"("model_type": "llama", "rope_scaling": 3)"}) {
    EXPECT_NE(
        test::error_of([&] { static_cast<void>(rotary_llama(fields)); }).find("Format: model: config.json"),
        std::string::npos)
        << fields;
  }
}

TEST(Rope, TurnsAPartOfNeoxHeads) {
  const auto neox = [](const std::string& fields) {
    Synthetic file;
    file.config(R"({"model_type": "gpt_neox", "hidden_size": 16, "num_attention_heads": 1,
                    "max_position_embeddings": 2048, "layer_norm_eps": 1e-5)" +
                fields + "}");
    file.add("embed_in.weight", {11, 16}).add("embed_out.weight", {11, 16}).norm("final_layer_norm", 16);
    const std::string layer = "layers.0.";
    file.norm(layer + "input_layernorm", 16).norm(layer + "post_attention_layernorm", 16);
    file.linear(layer + "attention.query_key_value", 48, 16).linear(layer + "attention.dense", 16, 16);
    file.linear(layer + "mlp.dense_h_to_4h", 32, 16).linear(layer + "mlp.dense_4h_to_h", 16, 32);
    return file.add(layer + "attention.rotary_emb.inv_freq", {2});
  };
  const Model stated = neox(R"(, "rotary_pct": 0.5, "rotary_emb_base": 256)").describe();
  EXPECT_EQ(stated.heads[0].rotary->dims, 8u);
  expect_frequencies(stated.heads[0], {1.0, 0.25, 0.0625, 0.015625});
  EXPECT_EQ(stated.heads[0].rotary->context, 2048u);
  EXPECT_TRUE(notes_mention(stated, "inv_freq\" holds other rotary frequencies"));
  const Model silent = neox("").describe();
  expect_frequencies(silent.heads[0], {1.0, 0.01});
  EXPECT_TRUE(notes_mention(silent, "rotary base 10000 is assumed"));
}

TEST(Rope, HasABaseOfItsOwnInGemma3sWindows) {
  const test::LlamaSizes sizes = {.layers = 7};
  Synthetic file = tiny_llama(sizes);
  for (int layer = 0; layer < 7; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    for (const char* name : {"pre_feedforward_layernorm", "post_feedforward_layernorm"})
      file.add(at + name + ".weight", {8});
    file.add(at + "self_attn.q_norm.weight", {16}).add(at + "self_attn.k_norm.weight", {16});
  }
  const std::string common = R"({"model_type": "gemma3_text", "hidden_size": 8, "num_attention_heads": 1,
                                 "head_dim": 16, )";
  for (
      const char* fields :
      {R"("rope_theta": 1e8, "rope_local_base_freq": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 8},
           "sliding_window_pattern": 6, "sliding_window": 512})",
       R"("rope_theta": 1e8, "rope_local_base_freq": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 8},
           "sliding_window": 512})",
       R"("layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                           "sliding_attention", "full_attention", "sliding_attention"],
           "rope_parameters": {"full_attention": {"rope_theta": 1e8, "rope_type": "linear", "factor": 8},
                               "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}}})"}) {
    const Model model = file.config(common + fields).describe();
    ASSERT_EQ(model.heads.size(), 7u);
    for (const std::size_t local : {0u, 4u, 6u}) {
      EXPECT_NEAR(model.heads[local].rotary->frequencies[4], 1e-2, 1e-14) << fields;
    }
    EXPECT_NEAR(model.heads[5].rotary->frequencies[0], 0.125, 1e-14) << fields;
    EXPECT_NEAR(model.heads[5].rotary->frequencies[4], 1.25e-5, 1e-17) << fields;
  }
  const Model silent = file.config(common + R"("sliding_window": 512})").describe();
  EXPECT_NEAR(silent.heads[5].rotary->frequencies[4], 1e-3, 1e-15);
  EXPECT_NEAR(silent.heads[6].rotary->frequencies[4], 1e-2, 1e-14);
  EXPECT_TRUE(notes_mention(silent, "rotary base 1000000 is assumed"));
}

/// A fixture whose configuration is changed by a merge patch, in which null removes a field.
Model patched(const std::string& fixture, const std::string& patch) {
  const test::Scratch scratch;
  const std::filesystem::path folder = scratch / "model";
  std::filesystem::copy(test::fixture(fixture), folder);
  std::ifstream file(folder / "config.json");
  nlohmann::json config = nlohmann::json::parse(file);
  config.merge_patch(nlohmann::json::parse(patch));
  std::ofstream(folder / "config.json") << config;
  return describe(files::Checkpoint(folder));
}

/// What is not modelled in the heads of the first layer and of the last one.
std::string refused_ends(const Model& model) {
  return model.heads.front().not_modelled + " | " + model.heads.back().not_modelled;
}

/// The base of a head's rotation.
double base(const Head& head) {
  return std::pow(head.rotary->frequencies.at(1), -0.5 * static_cast<double>(head.rotary->dims));
}

// These configurations were compared with the classes of transformers 5.24: their logits, or for ModernBERT's
// decoder their frequencies.

TEST(Rope, OfKindsOfLayersReadsNoOriginalContextOutside) {
  const std::string inside = R"("rope_parameters": {"full_attention": {"rope_type": "llama3", "factor": 8,
                                "low_freq_factor": 1, "high_freq_factor": 4}})";
  const auto with = [&](const std::string& outside) {
    return patched("gemma3", "{" + inside + outside + "}");
  };
  EXPECT_EQ(refused_ends(with(R"(, "original_max_position_embeddings": 16)")),
            " | original_max_position_embeddings: 16 where the class uses 32");
  EXPECT_EQ(refused_ends(with(R"(, "original_max_position_embeddings": 32)")), " | ");
  EXPECT_EQ(refused_ends(with("")), " | ");
}

TEST(Rope, OfOlmo3sWindowsReadsNoBaseOutside) {
  const std::string unstated = R"({"rope_parameters": {"full_attention": {"rope_theta": null},
                                   "sliding_attention": {"rope_theta": null}})";
  const Model other = patched("olmo3", unstated + R"(, "rope_theta": 300})");
  EXPECT_EQ(refused_ends(other), "rope_theta: 300 where the class uses 500000 | ");
  EXPECT_NEAR(base(other.heads.back()), 300.0, 1e-9);
  for (const char* const same : {"}", R"(, "rope_theta": 500000})"}) {
    const Model model = patched("olmo3", unstated + same);
    EXPECT_EQ(refused_ends(model), " | ");
    EXPECT_NEAR(base(model.heads.front()), 5e5, 1e-6);
  }
}

TEST(Rope, OfKindsOfLayersReadsNothingBesideTheirObjects) {
  EXPECT_EQ(refused_ends(patched("olmo3", R"({"rope_parameters": {"factor": 2}})")),
            "rope_parameters.factor beside \"sliding_attention\" | "
            "rope_parameters.factor beside \"full_attention\"");
  EXPECT_EQ(refused_ends(patched("olmo3", R"({"rope_parameters": {"full_attention": {"truncate": false}}})")),
            " | rope_parameters: truncate: false, by kind");
  EXPECT_EQ(
      refused_ends(patched("gemma3", R"({"rope_parameters": null, "rope_scaling": {"truncate": false}})")),
      " | rope_scaling: truncate: false, by kind");
  EXPECT_EQ(refused_ends(patched("mellum", R"({"rope_parameters": {"full_attention": null}})")),
            " | rope_parameters without \"full_attention\"");
}

TEST(Rope, OfClassesWithOneForAllLayersReadsNoObjectOfAKind) {
  const std::string kind = R"({"layer_types": ["full_attention", "full_attention"],
      "rope_parameters": {"rope_theta": 300, "full_attention": {"rope_type": "linear", "factor": 8}}})";
  EXPECT_EQ(patched("qwen3", kind).heads[0].not_modelled, "rope_parameters.full_attention: an object");
}

TEST(Rope, HasNamesOfItsOwnInModernBertsDecoder) {
  const Model model = patched("modernbert_decoder", R"({"rope_parameters": null, "global_rope_theta": 300,
                                                        "local_rope_theta": 70})");
  EXPECT_EQ(refused_ends(model), " | ");
  EXPECT_NEAR(base(model.heads.front()), 300.0, 1e-9);
  EXPECT_NEAR(base(model.heads.back()), 70.0, 1e-9);
  EXPECT_EQ(refused_ends(patched("modernbert_decoder", R"({"rope_parameters": null, "rope_theta": 300})")),
            "rope_theta: 300 where the class uses 160000 | ");
  EXPECT_EQ(refused_ends(patched("modernbert_decoder", R"({"rope_parameters": null,
                             "rope_scaling": {"rope_type": "linear", "factor": 2}})")),
            "rope_scaling | rope_scaling");
}

TEST(Rope, IsNotModelledWhereOnlyOtherProgramsReadAField) {
  const std::string neox = R"({"rope_parameters": null, "rotary_emb_base": 300, "rotary_pct": 1)";
  EXPECT_EQ(refused_ends(patched("gpt_neox", neox + "}")), " | ");
  EXPECT_EQ(refused_ends(patched("gpt_neox", neox + R"(, "rope_theta": 70})")),
            "rope_theta: 70 where the class uses 300 | rope_theta: 70 where the class uses 300");
  EXPECT_EQ(patched("stablelm", R"({"rope_parameters": {"partial_rotary_factor": null}, "rope_pct": 0.5})")
                .heads[0]
                .not_modelled,
            "rope_pct: 0.5 where the class uses 0.25");
}

TEST(Rope, IsNotModelledWhereTheClassScalesWhatIsNotStated) {
  for (const char* const name : {"gpt_oss", "apertus", "cwm"}) {
    EXPECT_EQ(refused_ends(patched(name, "{}")), " | ") << name;
    EXPECT_EQ(refused_ends(patched(name, R"({"rope_parameters": null, "rope_theta": 300})")),
              "rope_parameters, which are not stated | rope_parameters, which are not stated")
        << name;
  }
}

TEST(Rope, OfLlama3IsNotModelledWhereWavesAreBothLongAndShort) {
  EXPECT_EQ(rotary_llama(R"("model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
                           "low_freq_factor": 4.0, "high_freq_factor": 1.0,
                           "original_max_position_embeddings": 8192})")
                .heads[0]
                .not_modelled,
            "low_freq_factor: 4 above high_freq_factor: 1");
}

}  // namespace
}  // namespace normscope::models
