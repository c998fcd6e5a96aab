#include <algorithm>
#include <ctime>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>

#include "models/tiny_models.hpp"

namespace normscope::models {
namespace {

using test::error_of;
using test::norm_named;
using test::notes_mention;
using test::Synthetic;
using Names = std::vector<std::string>;

// A GPT-2 of width 4 with these layers.
Synthetic gpt2(std::initializer_list<int> layers) {
  Synthetic gpt;
  gpt.add("wte.weight", {7, 4}).add("wpe.weight", {5, 4}).norm("ln_f", 4);
  for (const int number : layers) {
    const std::string layer = "h." + std::to_string(number) + ".";
    gpt.norm(layer + "ln_1", 4).norm(layer + "ln_2", 4);
    gpt.add(layer + "attn.c_attn.weight", {4, 12}).add(layer + "attn.c_attn.bias", {12});
    gpt.add(layer + "attn.c_proj.weight", {4, 4}).add(layer + "attn.c_proj.bias", {4});
    gpt.add(layer + "mlp.c_fc.weight", {4, 16}).add(layer + "mlp.c_fc.bias", {16});
    gpt.add(layer + "mlp.c_proj.weight", {16, 4}).add(layer + "mlp.c_proj.bias", {4});
  }
  return gpt;
}

std::string complaint(Synthetic& file) {
  return error_of([&] { static_cast<void>(file.describe()); });
}

TEST(HostileModel, WholeOneIsTakenAsItIs) {
  const Model model = gpt2({0, 1}).config(R"({"model_type": "gpt2", "n_head": 2})").describe();
  EXPECT_TRUE(model.missing.empty());
  EXPECT_TRUE(model.vocabulary->tied);
  EXPECT_EQ(model.heads.size(), 4u);
}

TEST(HostileModel, ConfigurationErrorsNameFileAndKey) {
  const auto with = [](const std::string& config) {
    Synthetic file = gpt2({0});
    file.config(config);
    return complaint(file);
  };
  EXPECT_EQ(with("[1, 2]"), "Format: model: config.json: holds an array, expected a JSON object");
  EXPECT_EQ(with("{\"n_head\": 2"),
            "Format: model: config.json: is not valid JSON of at most 1048576 values, "
            "expected a JSON object");
  EXPECT_EQ(with(R"({"n_head": -3})"),
            "Format: model: config.json: \"n_head\" is -3, expected a whole number from 1 to 1000000");
  EXPECT_EQ(with(R"({"n_head": "2"})"),
            "Format: model: config.json: \"n_head\" is \"2\", expected a whole number from 1 to 1000000");
  EXPECT_EQ(with(R"({"n_layer": 1e300})"),
            "Format: model: config.json: \"n_layer\" is 1e+300, expected a whole number from 1 to 1000000");
  EXPECT_EQ(with(R"({"n_layer": 1.5})"),
            "Format: model: config.json: \"n_layer\" is 1.5, expected a whole number from 1 to 1000000");
  EXPECT_EQ(with(R"({"layer_norm_epsilon": -1e-5})"),
            "Format: model: config.json: \"layer_norm_epsilon\" is -1e-05, expected a finite number >= 0");
  EXPECT_EQ(with(R"({"model_type": {}})"),
            "Format: model: config.json: \"model_type\" is an object, expected a string");
  EXPECT_EQ(with(R"({"text_config": 3})"),
            "Format: model: config.json: \"text_config\" is 3, expected an object");
  EXPECT_EQ(with(R"({"tie_word_embeddings": 1})"),
            "Format: model: config.json: \"tie_word_embeddings\" is 1, expected true or false");
  EXPECT_EQ(with(R"({"n_head": 4, "num_key_value_heads": 3})"), "") << "GPT-2 shares no keys";
  EXPECT_EQ(
      test::error_of([] {
        static_cast<void>(
            test::tiny_llama().config(R"({"num_attention_heads": 4, "num_key_value_heads": 3})").describe());
      }),
      "Format: model: config.json: \"num_key_value_heads\" is 3, expected a divisor of the 4 heads");
  EXPECT_EQ(with(std::string(2'000'000, '[')),
            "Format: model: config.json: is not valid JSON of at most 1048576 values, "
            "expected a JSON object");
  EXPECT_EQ(
      with("{\"n_head\": null, \"deep\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
      "");
}

TEST(HostileModel, ShapeErrorsNameTensorAndExpectation) {
  const auto with = [](const std::string& name, std::vector<std::uint64_t> shape) {
    Synthetic file = gpt2({0, 1});
    file.config(R"({"model_type": "gpt2", "n_head": 2, "n_embd": 4})").add(name, std::move(shape));
    const std::string text = complaint(file);
    return text.substr(std::min(text.find("tensor \""), text.size()));
  };
  EXPECT_EQ(with("h.1.ln_2.weight", {5}), "tensor \"h.1.ln_2.weight\" has shape [5], expected [4]");
  EXPECT_EQ(with("h.1.ln_2.weight", {1, 4}), "tensor \"h.1.ln_2.weight\" has shape [1, 4], expected [4]");
  EXPECT_EQ(with("h.0.ln_1.bias", {3}), "tensor \"h.0.ln_1.bias\" has shape [3], expected [4]");
  EXPECT_EQ(with("h.1.attn.c_attn.weight", {12, 4}),
            "tensor \"h.1.attn.c_attn.weight\" has shape [12, 4], expected [4, 12]");
  EXPECT_EQ(with("h.0.attn.c_attn.bias", {4}),
            "tensor \"h.0.attn.c_attn.bias\" has shape [4], expected [12]");
  EXPECT_EQ(with("h.0.mlp.c_fc.weight", {4, 0}),
            "tensor \"h.0.mlp.c_fc.weight\" has shape [4, 0], expected [4, any]");
  EXPECT_EQ(with("h.0.mlp.c_proj.weight", {9, 4}),
            "tensor \"h.0.mlp.c_proj.weight\" has shape [9, 4], expected [16, 4]");
  EXPECT_EQ(with("wte.weight", {4}), "") << "a table of one row is a table";
  EXPECT_EQ(with("wte.weight", {7, 3}), "tensor \"wte.weight\" has shape [7, 3], expected [..., 4]");
}

TEST(HostileModel, MutilatedFilesAreDescribedOrRefusedWithAnError) {
  const Names all = {
      "wte.weight",           "wpe.weight",          "ln_f.weight",         "ln_f.bias",
      "h.0.ln_1.weight",      "h.0.ln_1.bias",       "h.1.ln_2.weight",     "h.1.attn.c_attn.weight",
      "h.0.attn.c_attn.bias", "h.0.mlp.c_fc.weight", "h.1.mlp.c_fc.weight", "h.1.attn.c_proj.weight"};
  Random random(7);
  int refused = 0;
  for (int round = 0; round < 100; ++round) {
    Synthetic file = gpt2({0, 1});
    file.config(R"({"model_type": "gpt2", "n_head": )" + std::to_string(random.below(5)) + "}");
    for (std::uint64_t blow = 0; blow < 2; ++blow) {
      std::vector<std::uint64_t> shape(random.below(4));
      for (std::uint64_t& extent : shape) extent = random.below(6);
      file.add(all[random.below(all.size())], shape);
    }
    const files::Checkpoint checkpoint = file.open();
    const std::string refusal = error_of([&] {
      for (const Norm& norm : describe(checkpoint).norms) validate(read_norm(checkpoint, norm));
    });
    refused += refusal.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 30);
  EXPECT_LT(refused, 100);
}

TEST(HostileModel, HeadsMustDivideTheirProjection) {
  Synthetic file = gpt2({0});
  file.config(R"({"model_type": "gpt2", "n_head": 3})");
  EXPECT_NE(complaint(file).find("has 4 outputs, expected a multiple of 3 heads"), std::string::npos);
}

TEST(HostileModel, GapsAmongLayersAreMissingLayers) {
  const Model model = gpt2({0, 3}).config(R"({"model_type": "gpt2", "n_layer": 5})").describe();
  EXPECT_EQ(model.layers, 5);
  EXPECT_EQ(model.missing, (Names{"h.1.*", "h.2.*", "h.4.*"}));
  EXPECT_FALSE(norm_named(model, "h.3.ln_1").connections_known);
  EXPECT_FALSE(norm_named(model, "ln_f").connections_known);
}

TEST(HostileModel, AbsurdLayerNumbersStayCheap) {
  Synthetic file = gpt2({0, 999'999});
  file.norm("h.99999999999999999999.ln_1", 4).norm("h.1000000.ln_1", 4).norm("h.01.ln_1", 4);
  const Model model = file.describe();
  EXPECT_EQ(model.layers, 1'000'000);
  EXPECT_EQ(model.missing.size(), 100u);
  EXPECT_TRUE(notes_mention(model, "999898 more tensors are missing"));
  EXPECT_EQ(norm_named(model, "h.99999999999999999999.ln_1").role, "unknown");
}

TEST(HostileModel, ManyLayersTakeTimeInProportion) {
  const auto processor_time_of = [](int layers) {
    Synthetic file;
    for (int layer = 0; layer < layers; ++layer) {
      file.add("h." + std::to_string(layer) + ".ln_1.weight", {1});
      file.add("h." + std::to_string(layer) + ".attn.c_attn.weight", {1, 3});
    }
    file.config(R"({"model_type": "gpt2", "n_head": 1})");
    const files::Checkpoint checkpoint = file.open();
    const std::clock_t start = std::clock();
    const Model model = describe(checkpoint);
    EXPECT_EQ(model.norms.size(), static_cast<std::size_t>(layers));
    EXPECT_EQ(model.missing.size(), 100u);
    return static_cast<double>(std::clock() - start);
  };
  // Four times the layers; time that grows with their square would be 16 times as long.
  EXPECT_LT(processor_time_of(8'000), 10.0 * processor_time_of(2'000));
}

TEST(HostileModel, AbsurdRepetitionDoesNotOverflow) {
  Synthetic file;
  file.norm("encoder.albert_layer_groups.999999.albert_layers.0.full_layer_layer_norm", 4);
  file.config(R"({"model_type": "albert", "num_hidden_layers": 1000000, "num_hidden_groups": 1})");
  EXPECT_EQ(file.describe().layers, std::numeric_limits<int>::max());
}

TEST(HostileModel, BiasThatOneLayerLacksIsMissing) {
  Synthetic file = gpt2({0, 1});
  const Model model = file.remove("h.1.ln_1.bias").remove("h.0.mlp.c_fc.bias").describe();
  EXPECT_EQ(model.missing, (Names{"h.1.ln_1.bias", "h.0.mlp.c_fc.bias"}));
}

TEST(HostileModel, NormWithoutGainIsMissingAndNotInvented) {
  const Model model = gpt2({0, 1}).remove("h.1.ln_1.weight").describe();
  EXPECT_EQ(model.norms.size(), 4u);
  EXPECT_EQ(model.missing, Names{"h.1.ln_1.weight"});
}

TEST(HostileModel, ExtraMatricesMakeTheNormsNearThemIncomplete) {
  const Model model = gpt2({0, 1}).add("h.1.adapter.down.weight", {2, 4}).describe();
  EXPECT_TRUE(norm_named(model, "h.0.ln_1").connections_known);
  EXPECT_FALSE(norm_named(model, "h.1.ln_1").connections_known);
  EXPECT_TRUE(norm_named(model, "ln_f").connections_known);
  EXPECT_TRUE(notes_mention(model, "\"h.1.adapter.down.weight\""));
}

// A layer may do something with it, as routers do with a correction of one axis.
TEST(HostileModel, ExtraTensorsOfALayerAreNoPassThatIsKnown) {
  EXPECT_EQ(gpt2({0, 1}).describe().decoder->not_modelled, "");
  EXPECT_EQ(gpt2({0, 1}).add("h.1.mlp.correction", {4}).describe().decoder->not_modelled,
            "tensor \"h.1.mlp.correction\"");
  EXPECT_EQ(gpt2({0, 1}).add("correction", {4}).describe().decoder->not_modelled, "");
}

TEST(HostileModel, ExtraNormsAreListedAsUnknown) {
  const Model model = gpt2({0}).norm("h.0.ln_cross_attn", 4).describe();
  ASSERT_EQ(model.norms.size(), 4u);
  EXPECT_EQ(model.norms[3].name, "h.0.ln_cross_attn");
  EXPECT_FALSE(model.norms[3].connections_known);
}

TEST(HostileModel, NamesThatFitAnotherTypesShapesAreNoError) {
  // One key-value head behind all queries: GPT-2's names, not its shapes.
  Synthetic file = gpt2({0});
  file.add("h.0.attn.c_attn.weight", {8, 4}).add("h.0.attn.c_attn.bias", {8});
  file.config(R"({"model_type": "my_gpt"})");
  const Model model = file.describe();
  EXPECT_EQ(model.architecture, "unknown");
  EXPECT_EQ(model.norms.size(), 3u);
  EXPECT_TRUE(notes_mention(model, "not GPT-2"));

  const Model kept = gpt2({0}).config(R"({"model_type": "my_gpt"})").describe();
  EXPECT_EQ(kept.architecture, "unknown");
  EXPECT_EQ(kept.norms.size(), 3u);
  EXPECT_TRUE(notes_mention(kept, "model_type my_gpt is not known"));
}

TEST(UnknownModel, NormsAreFoundByNameAndShape) {
  Synthetic file;
  file.norm("net.2.LayerNorm", 6)
      .norm("net.10.ln_1", 6)
      .add("net.3.rms_norm.weight", {4})
      .add("net.4.norm.g", {6});
  file.norm("net.1.batch_norm", 6).add("net.1.batch_norm.running_mean", {6});
  file.add("net.5.conv.weight", {3, 3}).add("normal.table", {6, 2}).add("lnx.weight", {6});
  const Model model = file.describe();
  EXPECT_EQ(model.architecture, "unknown");
  EXPECT_EQ(model.width, 6u);
  Names found;
  for (const Norm& norm : model.norms) found.push_back(norm.name);
  EXPECT_EQ(found, (Names{"net.2.LayerNorm", "net.3.rms_norm", "net.4.norm", "net.10.ln_1"}));
  EXPECT_EQ(model.norms[0].kind, NormKind::layer);
  EXPECT_EQ(model.norms[1].kind, NormKind::rms);
  EXPECT_EQ(model.norms[2].kind, NormKind::layer);
  EXPECT_EQ(model.norms[0].placement, Placement::unknown);
  EXPECT_FALSE(model.norms[0].connections_known);
  EXPECT_TRUE(notes_mention(model, "may be an RMSNorm"));

  Synthetic bare;
  const Model rms = bare.add("a.norm.weight", {4}).describe();
  EXPECT_EQ(rms.norms[0].kind, NormKind::rms);
  EXPECT_TRUE(notes_mention(rms, "may be a LayerNorm"));
}

TEST(UnknownModel, WithoutNormsIsStillAModel) {
  Synthetic file;
  const Model model = file.add("w", {2, 3}).describe();
  EXPECT_TRUE(model.norms.empty());
  EXPECT_EQ(model.parameters, 6u);
}

TEST(ReadNorm, RefusesGainsThatAreNotFloatingPoint) {
  Synthetic file;
  file.add("a.norm.weight", {4}, Dtype::I8);
  const files::Checkpoint checkpoint = file.open();
  const Model model = describe(checkpoint);
  const std::string text = error_of([&] { static_cast<void>(read_norm(checkpoint, model.norms.at(0))); });
  EXPECT_TRUE(text.starts_with("Unsupported: model: "));
  EXPECT_TRUE(text.ends_with("tensor \"a.norm.weight\" is I8, expected a floating-point type"));
}

TEST(DescribeByName, TakesNoBatchNormAndNoMomentOfAnOptimizerForANorm) {
  test::Synthetic file;
  file.add("mu/layer_norm/gamma", {8}).add("mu/layer_norm/beta", {8});
  file.add("bn_norm/gamma", {8}).add("bn_norm/beta", {8}).add("bn_norm/moving_mean", {8});
  file.add("batch_normalization_3/gamma", {8});
  file.add("opt_state.0.mu.layer_norm.scale", {8}).add("optimizer/adam/layer_norm/gamma", {8});
  const Model model = describe(file.open());
  ASSERT_EQ(model.norms.size(), 1u);
  EXPECT_EQ(model.norms[0].name, "mu/layer_norm");
}

TEST(DescribeByName, TakesNoIntegerConstantForANorm) {
  Synthetic file;
  file.add("a/layer_norm", {4}, Dtype::I64).add("b/layer_norm/gamma", {4}, Dtype::F32);
  const files::Checkpoint checkpoint = file.open();
  const Model model = describe(checkpoint);
  ASSERT_EQ(model.norms.size(), 1u);
  EXPECT_EQ(model.norms[0].name, "b/layer_norm");
}

}  // namespace
}  // namespace normscope::models
