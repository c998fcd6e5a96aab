#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/models/model.hpp>

#include "files/onnx_files.hpp"
#include "models/synthetic.hpp"
#include "synthetic.hpp"

namespace normscope::models {
namespace {

using test::norm_named;
using test::notes_mention;
using test::OnnxFile;
using test::Synthetic;

std::vector<std::string> norms_of(const Model& model) {
  std::vector<std::string> names;
  for (const Norm& norm : model.norms) names.push_back(norm.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(FoundNorms, StandInTheOrderOfNumberedNames) {
  Synthetic file;
  for (const char* name : {"layer_normalization_10", "layer_normalization_2", "layer_normalization"}) {
    file.add(std::string(name) + "/gamma", {4}).add(std::string(name) + "/beta", {4});
  }
  const Model model = file.norm("a.9.ln", 4).norm("a.11.ln", 4).describe();
  EXPECT_EQ(norms_of(model), (Names{"a.9.ln", "a.11.ln", "layer_normalization", "layer_normalization_2",
                                    "layer_normalization_10"}));
  for (const Norm& norm : model.norms) {
    EXPECT_FALSE(norm.order_known);
    EXPECT_EQ(norm.kind, NormKind::layer);
  }
}

TEST(FoundNorms, HaveTheNamesOfManyLibraries) {
  Synthetic file;
  file.norm("a.intra_ln", 4).add("b.norm.scale", {4});
  file.add("layernorm_qkv.layer_norm_weight", {4}).add("layernorm_qkv.layer_norm_bias", {4});
  file.add("tf/LayerNorm/gamma:0", {4}).add("tf/LayerNorm/beta:0", {4});
  file.add("wide.norm.g", {1, 4, 1, 1});
  file.add("x/ln_bias", {4}).add("x/norm_mean", {4});  // beside gains that the file does not have
  const Model model = file.describe();
  EXPECT_EQ(norms_of(model),
            (Names{"a.intra_ln", "b.norm", "layernorm_qkv.layer_norm", "tf/LayerNorm", "wide.norm"}));
  EXPECT_TRUE(norm_named(model, "layernorm_qkv.layer_norm").bias.has_value());
  EXPECT_TRUE(norm_named(model, "tf/LayerNorm").bias.has_value());
  EXPECT_EQ(norm_named(model, "wide.norm").width, 4u);
}

TEST(FoundNorms, ReachOverSeveralAxesWithABiasOfThatShape) {
  Synthetic file;
  file.add("volume.norm.weight", {4, 2, 3}).add("volume.norm.bias", {4, 2, 3});
  file.add("keras/layer_normalization/gamma", {2, 3}).add("keras/layer_normalization/beta", {2, 3});
  file.linear("projection.norm", 4, 4);                                             // a matrix
  file.add("stack/layer_norm/scale", {2, 4}).add("stack/layer_norm/bias", {2, 4});  // of two layers
  const files::Checkpoint checkpoint = file.open();
  const Model model = describe(checkpoint);
  EXPECT_EQ(norms_of(model), (Names{"keras/layer_normalization", "stack/layer_norm[0]", "stack/layer_norm[1]",
                                    "volume.norm"}));
  EXPECT_EQ(norm_named(model, "volume.norm").width, 24u);
  const NormSpec spec = read_norm(checkpoint, norm_named(model, "volume.norm"));
  EXPECT_EQ(spec.gain.size(), 24u);
  EXPECT_EQ(spec.bias.size(), 24u);
}

TEST(FoundNorms, SayWhatIsAssumedOfThem) {
  const auto note_of = [](const Synthetic& file) {
    std::string all;
    for (const std::string& note : file.describe().notes) all += note + "\n";
    return all;
  };
  EXPECT_NE(note_of(Synthetic().norm("a.norm", 4))
                .find("assumed for a.norm: LayerNorm, since it has a bias; eps 1e-05, the default of "
                      "PyTorch; the gain as "
                      "stored, nothing added"),
            std::string::npos);
  EXPECT_NE(note_of(Synthetic().add("a.norm.weight", {4}).add("b.norm.weight", {4}))
                .find("assumed for a.norm, b.norm: RMSNorm, since no norm that was found has a bias; it may "
                      "be a LayerNorm "
                      "without one"),
            std::string::npos);
  EXPECT_NE(note_of(Synthetic().add("a.rms_norm.weight", {4}).config(R"({"rms_norm_eps": 0.5})"))
                .find("assumed for a.rms_norm: RMSNorm, by its name; the gain as stored"),
            std::string::npos);
  EXPECT_NE(note_of(Synthetic().norm("a.norm", 4).add("conv.weight", {4, 3, 3, 3}))
                .find("beside convolutions it may be a GroupNorm"),
            std::string::npos);
}

TEST(FoundNorms, HaveTheNamesOfJax) {
  Synthetic file;
  file.add("linear/w", {32, 32}).add("linear/b", {32});
  file.add("layer_norm/scale", {32}).add("layer_norm/offset", {32});
  file.add("block/query_norm//scale", {4, 32}).add("block/query_norm//offset", {4, 32});
  file.add("block/proj//weights", {4, 32, 32});
  file.add("model/h0/ln_1/g", {8}).add("model/h0/ln_1/b", {8});
  const files::Checkpoint checkpoint = file.open();
  const Model model = describe(checkpoint);
  EXPECT_EQ(norms_of(model), (Names{"block/query_norm[0]", "block/query_norm[1]", "block/query_norm[2]",
                                    "block/query_norm[3]", "layer_norm", "model/h0/ln_1"}));
  for (const Norm& norm : model.norms) {
    EXPECT_EQ(norm.kind, NormKind::layer);
    EXPECT_TRUE(norm.bias.has_value());
    EXPECT_EQ(read_norm(checkpoint, norm).gain.size(), norm.width);
  }
  const Norm& third = norm_named(model, "block/query_norm[2]");
  EXPECT_EQ(third.width, 32u);
  EXPECT_EQ(third.gain->selector(), "block/query_norm//scale[2]");
  EXPECT_EQ(read_norm(checkpoint, third).gain[0], read(*checkpoint.find("block/query_norm//scale"))[64]);
  EXPECT_TRUE(notes_mention(model, "eps 1e-05, the default of Haiku"));
  EXPECT_TRUE(notes_mention(model, "a row of the gain for each layer or head"));
  EXPECT_FALSE(notes_mention(model, "no norm has a bias"));
}

TEST(FoundNorms, AreStackedByRows) {
  Synthetic file;
  file.add("layers/q_norm/scale", {8, 4}).add("attn.k_norm.weight", {8, 4}).add("layers/ln/scale", {3, 4});
  file.add("t5x/layer_norm/scale", {16, 4}).add("deep/norm/scale", {2, 3, 4});
  const Model model = file.describe();
  EXPECT_EQ(model.norms.size(), 8u + 8 + 3);
  EXPECT_EQ(norm_named(model, "attn.k_norm[7]").gain->offset, 28u);
  EXPECT_EQ(other_norms_text(model), "2 stack of norms along an axis that is not known");
}

TEST(FoundNorms, MayHaveOtherNames) {
  Synthetic file;
  file.linear("net.0", 6, 6).norm("net.1", 6).linear("net.3", 6, 6);
  file.linear("fc1", 6, 6).norm("bn1", 6);
  file.add("sublayer.0.norm.a_2", {6}).add("sublayer.0.norm.b_2", {6});
  file.add("norm_1.alpha", {6}).add("norm_1.bias", {6});
  const Model model = file.describe();
  EXPECT_EQ(norms_of(model), (Names{"bn1", "net.1", "norm_1", "sublayer.0.norm"}));
  for (const Norm& norm : model.norms) {
    EXPECT_EQ(norm.kind, NormKind::layer);
    EXPECT_TRUE(norm.bias.has_value());
  }
  EXPECT_EQ(norm_named(model, "sublayer.0.norm").eps, 1e-6);
  EXPECT_TRUE(notes_mention(model,
                            "assumed for bn1: LayerNorm, since it has a bias (a BatchNorm by its name, but "
                            "without running statistics)"));
  EXPECT_TRUE(notes_mention(model, "known by its place in a Sequential beside linear maps only"));
  EXPECT_TRUE(notes_mention(model, "which divides by the unbiased deviation plus eps"));
}

TEST(FoundNorms, AreNotWhatOnlyResemblesThem) {
  Synthetic file;
  file.linear("fc", 6, 6).add("embed.weight", {10, 6}).add("pos_scale", {6}).add("pos.scale", {6});
  file.add("blocks.0.ls1.gamma", {6}).add("blocks.0.gamma_1", {6}).add("layer_scale.lambda1", {6});
  file.add("relu.weight", {6}).add("net.1.weight", {6});      // a PReLU
  file.norm("lonely.1", 6);                                   // no linear map beside it
  file.add("lin.weight_g", {6}).add("lin.weight_v", {6, 6});  // weight normalization
  file.add("weight_norm.scale", {6}).add("normals.weight", {6});
  file.add("gn.weight", {6}).add("gn.bias", {6});                         // a GroupNorm under a short name
  file.add("x.alpha", {6}).add("norm.alpha", {1}).add("norm.bias", {1});  // numbers
  file.add("norm_type", {6}, Dtype::I64).add("opt_state/0/mu/layer_norm/scale", {6});
  EXPECT_EQ(norms_of(file.describe()), Names{});
  Synthetic images;
  images.add("conv1.weight", {6, 3, 3, 3})
      .norm("bn1", 6)
      .norm("features.1", 6)
      .add("features.0.weight", {6, 3, 3, 3});
  EXPECT_EQ(norms_of(images.describe()), Names{}) << "batch norms without running statistics";
}

TEST(FoundNorms, AreSaidToBeNoneOnlyWithWhatMayBeOne) {
  EXPECT_TRUE(notes_mention(Synthetic().linear("fc", 6, 6).add("mystery.strength", {6}).describe(),
                            "no norm was found by name; vectors that may be gains: mystery.strength"));
  EXPECT_FALSE(notes_mention(Synthetic().linear("fc", 6, 6).describe(), "vectors that may be gains"));
}

TEST(FoundNorms, MayHaveOneGainForAllFeatures) {
  Synthetic file;
  file.add("a.norm.weight", {6}).add("a.norm.scale", {1});  // the scale of a quantized gain
  file.add("b.norm.g", {1}).add("c.scale_norm.scale", {});
  const files::Checkpoint checkpoint = file.open();
  const Model model = describe(checkpoint);
  EXPECT_EQ(norms_of(model), (Names{"a.norm", "b.norm", "c.scale_norm"}));
  EXPECT_EQ(model.norms[1].kind, NormKind::rms);
  EXPECT_EQ(model.norms[2].kind, NormKind::spherical);
  EXPECT_EQ(model.norms[1].width, 6u);
  EXPECT_EQ(read_norm(checkpoint, model.norms[2]).gain.size(), 6u);
  EXPECT_EQ(other_norms_text(model), "");

  const Model alone = Synthetic().add("b.norm.g", {1}).describe();
  EXPECT_TRUE(alone.norms.empty());
  EXPECT_EQ(other_norms_text(alone), "1 ScaleNorm");
  const Model told = Synthetic().add("b.norm.g", {1}).config(R"({"d_model": 8})").describe();
  EXPECT_EQ(told.norms.at(0).width, 8u);
}

TEST(FoundNorms, ThatAreNotAnalysedAreCountedByKind) {
  Synthetic file;
  for (int i = 0; i < 33; ++i) {
    const std::string at = "layer." + std::to_string(i) + ".bn1.";
    file.add(at + "weight", {4})
        .add(at + "bias", {4})
        .add(at + "running_mean", {4})
        .add(at + "running_var", {4});
  }
  file.add("plain.bn.running_mean", {4}).add("instance_norm.weight", {4}).add("group_norm.weight", {4});
  const Model model = file.describe();
  EXPECT_TRUE(model.norms.empty());
  EXPECT_EQ(other_norms_text(model), "34 BatchNorm, 1 GroupNorm and 1 InstanceNorm");
  EXPECT_TRUE(notes_mention(model, "34 BatchNorm"));
}

TEST(FoundNorms, OfDiffusionModelsHaveTheGroupsOfTheConfiguration) {
  Synthetic file;
  file.norm("down_blocks.0.resnets.0.norm1", 8).norm("down_blocks.0.attentions.0.norm", 8);
  file.norm("down_blocks.0.attentions.0.transformer_blocks.0.norm1", 8).norm("odd.norm", 6);
  file.config(R"({"_class_name": "UNet2DConditionModel", "norm_num_groups": 4, "norm_eps": 0.25})");
  const Model model = file.describe();
  EXPECT_EQ(model.norms.size(), 3u);
  EXPECT_EQ(other_norms_text(model), "1 GroupNorm") << "4 groups do not divide 6 channels";
  const Norm& convolution = norm_named(model, "down_blocks.0.resnets.0.norm1");
  EXPECT_EQ(convolution.groups, 4u);
  EXPECT_EQ(convolution.eps, 0.25);
  const Norm& before = norm_named(model, "down_blocks.0.attentions.0.norm");
  EXPECT_EQ(before.groups, 4u);
  EXPECT_EQ(before.eps, 1e-6);
  const Norm& tokens = norm_named(model, "down_blocks.0.attentions.0.transformer_blocks.0.norm1");
  EXPECT_EQ(tokens.groups, 1u);
  EXPECT_EQ(tokens.eps, 1e-5);
}

TEST(UnknownModel, IsNamedByItsModelType) {
  const Model model = Synthetic().norm("a.norm", 4).config(R"({"model_type": "novel"})").describe();
  EXPECT_FALSE(model.is_known());
  EXPECT_EQ(model.title, "unknown architecture (model_type novel)");
  EXPECT_EQ(why_no_logits(model), "not modelled: unknown architecture (model_type novel)");
}

TEST(StatedNorms, StandBesideThoseOfAStatedArchitecture) {
  OnnxFile file;
  for (const std::string name : {"h.0.ln_1", "h.0.ln_2", "ln_f", "extra.ln"}) {
    file.weights(name + ".weight", {4}).weights(name + ".bias", {4});
    file.node("LayerNormalization", {"x", name + ".weight", name + ".bias"}, name);
  }
  file.weights("h.0.attn.c_attn.weight", {4, 12});
  const Model model = describe(open(file), {.architecture = "gpt2"});
  EXPECT_EQ(model.architecture, "gpt2");
  EXPECT_EQ(norms_of(model), (Names{"h.0.ln_1", "h.0.ln_2", "ln_f", "extra.ln"}));
  EXPECT_TRUE(model.norms[2].order_known);
  EXPECT_FALSE(model.norms[3].order_known);
  EXPECT_EQ(model.norms[3].eps_source, Source::tensors);
}

TEST(StatedNorms, OfOtherKindsAreCounted) {
  const Model model =
      describe(open(OnnxFile()
                        .weights("bn.weight", {4})
                        .weights("bn.running_mean", {4})
                        .node("BatchNormalization", {"x", "bn.weight", "b", "bn.running_mean", "v"}, "y")
                        .node("BatchNormalization", {"y", "bn.weight", "b", "bn.running_mean", "v"}, "z")
                        .node("InstanceNormalization", {"z", "bn.weight", "b"}, "u")));
  EXPECT_EQ(other_norms_text(model), "2 BatchNorm and 1 InstanceNorm");
}

TEST(ElementwiseNorms, AreFoundByTheirScalars) {
  test::Synthetic file;
  file.norm("blocks.0.norm1", 4).add("blocks.0.norm1.alpha", {1});
  file.norm("blocks.0.norm2", 4).add("blocks.0.norm2.alpha", {}).add("blocks.0.norm2.shift", {1});
  file.norm("blocks.1.norm1", 4).add("blocks.1.norm1.alpha", {4});
  const files::Checkpoint checkpoint = file.open();
  const Model model = describe(checkpoint);
  EXPECT_EQ(test::norm_named(model, "blocks.0.norm1").kind, NormKind::dyt);
  EXPECT_EQ(test::norm_named(model, "blocks.0.norm2").kind, NormKind::derf);
  // Not one number: another parameter of that name.
  EXPECT_EQ(test::norm_named(model, "blocks.1.norm1").kind, NormKind::layer);
  const NormSpec spec = read_norm(checkpoint, test::norm_named(model, "blocks.0.norm2"));
  EXPECT_EQ(spec.gain.size(), 4u);
  EXPECT_NE(spec.alpha, 1.0);
  EXPECT_NE(spec.shift, 0.0);
}

}  // namespace

}  // namespace normscope::models
