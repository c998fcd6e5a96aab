#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "files/onnx_files.hpp"
#include "models/synthetic.hpp"
#include "support/data.hpp"

namespace normscope::models {
namespace {

using test::norm_named;
using test::notes_mention;
using test::OnnxFile;
using test::real_attribute;

TEST(StatedNorms, DescribeAnUnknownModel) {
  OnnxFile file;
  test::add_written_out_norm(file, {4}, -1)
      .weights("w", {4, 2})
      .axes("not parameters", {1, 2, 3})
      .node("MatMul", {"out", "w"}, "z");
  const files::Checkpoint checkpoint = open(file);
  const Model model = describe(checkpoint);
  EXPECT_EQ(model.architecture, "unknown");
  EXPECT_EQ(model.evidence, "ONNX graph");
  EXPECT_EQ(model.width, 4u);
  EXPECT_EQ(model.parameters, 4u + 4 + 2 + 8);
  ASSERT_EQ(model.norms.size(), 1u);
  const Norm& norm = model.norms[0];
  EXPECT_EQ(norm.name, "h.0.ln");
  EXPECT_EQ(norm.layer, 0);
  EXPECT_EQ(norm.eps_source, Source::tensors);
  EXPECT_EQ(norm.eps, static_cast<double>(1e-6f));
  EXPECT_FALSE(norm.connections_known);
  ASSERT_EQ(norm.readers.size(), 1u);
  EXPECT_EQ(norm.readers[0].weight.tensor, "w");
  EXPECT_EQ(norm.readers[0].layout, Layout::in_out);
  EXPECT_EQ(norm.readers[0].in, 4u);
  EXPECT_EQ(norm.readers[0].out, 2u);
  const NormSpec spec = read_norm(checkpoint, norm);
  EXPECT_EQ(spec.gain, (std::vector<double>{0.125, 0.25, 0.375, 0.5}));
  EXPECT_EQ(spec.bias, spec.gain);
}

TEST(StatedNorms, ThatShareParametersAreOneNormAppliedAgain) {
  const Model model = describe(open(OnnxFile()
                                        .weights("a.g", {4})
                                        .weights("a.h", {4})
                                        .node("LayerNormalization", {"x", "a.g"}, "y")
                                        .node("LayerNormalization", {"y", "a.g"}, "z")
                                        .node("LayerNormalization", {"z", "a.h"}, "u")));
  ASSERT_EQ(model.norms.size(), 2u);
  EXPECT_EQ(model.norms[0].name, "a");
  EXPECT_EQ(model.norms[0].applications, 2);
  EXPECT_EQ(model.norms[1].name, "a (2)");
  EXPECT_EQ(model.norms[1].applications, 1);
}

TEST(StatedNorms, AreApartWhereKindOrOffsetDiffer) {
  const Model model = describe(open(OnnxFile()
                                        .weights("a.g", {4})
                                        .scalar("one", 1)
                                        .node("Add", {"a.g", "one"}, "sum")
                                        .node("LayerNormalization", {"x", "a.g"}, "y")
                                        .node("RMSNormalization", {"y", "a.g"}, "z")
                                        .node("RMSNormalization", {"z", "sum"}, "u")));
  ASSERT_EQ(model.norms.size(), 3u);
  EXPECT_EQ(model.norms[1].kind, NormKind::rms);
  EXPECT_EQ(model.norms[1].gain_offset, 0.0);
  EXPECT_EQ(model.norms[2].gain_offset, 1.0);
}

TEST(StatedNorms, LeaveNothingToNames) {
  const Model model =
      describe(open(OnnxFile()
                        .weights("a.g", {4})
                        .weights("norm.weight", {4})
                        .weights("b.norm.weight", {4})
                        .node("LayerNormalization", {"x", "a.g"}, "y")
                        .node("LayerNormalization", {"y", "b.norm.weight", "computed"}, "z")));
  ASSERT_EQ(model.norms.size(), 1u);
  EXPECT_EQ(model.norms[0].name, "a");
  EXPECT_TRUE(notes_mention(
      model,
      "stated by no graph pattern, though the names of these tensors suggest norms: b.norm.weight, "
      "norm.weight; nothing is computed of them"));
  EXPECT_TRUE(notes_mention(
      model, "not understood in the graph: LayerNormalization node/z: computed is not a stored bias"));
  EXPECT_EQ(other_norms_text(model), "1 LayerNormalization");
}

TEST(StatedNorms, NameMapsThatAreNotUnderstoodAndDefaults) {
  const Model model = describe(open(OnnxFile()
                                        .weights("a.g", {4})
                                        .weights("w", {4, 3})
                                        .input("a.g", {4})
                                        .node("LayerNormalization", {"x", "a.g"}, "y")
                                        .node("Gemm", {"y", "w"}, "z", {real_attribute("alpha", 4)})));
  ASSERT_EQ(model.norms.size(), 1u);
  EXPECT_TRUE(model.norms[0].readers.empty());
  EXPECT_TRUE(notes_mention(model, "a is read by maps that are not understood: w (Gemm with alpha 4)"));
  EXPECT_TRUE(notes_mention(model, "a parameter of a is also an input of the graph"));
}

OnnxFile tiny_gpt2(bool transposed) {
  OnnxFile file;
  for (const std::string name : {"h.0.ln_1", "h.0.ln_2", "ln_f"}) {
    file.weights(name + ".weight", {4}).weights(name + ".bias", {4});
    file.node("LayerNormalization", {"x", name + ".weight"}, name, {real_attribute("epsilon", 0.5f)});
  }
  file.weights("h.0.attn.c_attn.weight",
               transposed ? std::vector<std::uint64_t>{3, 5} : std::vector<std::uint64_t>{4, 12});
  return file;
}

TEST(StatedNorms, AreNotThoseOfAnArchitectureThatOnlyNamesSuggest) {
  const Model model = describe(open(tiny_gpt2(false)));
  EXPECT_EQ(model.architecture, "unknown");
  EXPECT_EQ(model.evidence, "ONNX graph");
  EXPECT_EQ(model.norms.size(), 3u);
  EXPECT_TRUE(model.heads.empty());
  EXPECT_TRUE(notes_mention(model,
                            "the tensor names are those of GPT-2 or minGPT, but what is computed is what the "
                            "graph states"));
}

TEST(StatedNorms, StateTheEpsOfAnArchitectureThatTheUserStates) {
  const Model model = describe(open(tiny_gpt2(false)), {.architecture = "gpt2"});
  EXPECT_EQ(model.architecture, "gpt2");
  EXPECT_EQ(norm_named(model, "h.0.ln_1").eps, 0.5);
  EXPECT_EQ(norm_named(model, "h.0.ln_1").eps_source, Source::tensors);
}

TEST(StatedNorms, AreNamedWhereTheyContradictTheArchitectureThatTheUserStates) {
  OnnxFile file = tiny_gpt2(false);
  file.node("RMSNormalization", {"x", "h.0.ln_1.weight"}, "other");
  const Model model = describe(open(file), {.architecture = "gpt2"});
  EXPECT_TRUE(notes_mention(model,
                            "the graph states h.0.ln_1 otherwise than GPT-2 or minGPT has it: "
                            "RMSNorm with eps 1e-05"));
}

TEST(StatedNorms, AreToldByTheGraphWhereShapesDoNotFit) {
  const Model model = describe(open(tiny_gpt2(true)));
  EXPECT_EQ(model.architecture, "unknown");
  EXPECT_EQ(model.norms.size(), 3u);
}

TEST(StatedNorms, OfMagikaAreItsTwo) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/magika_v3_3.onnx");
  const files::Checkpoint checkpoint(path);
  const Model model = describe(checkpoint);
  EXPECT_EQ(model.evidence, "ONNX graph");
  ASSERT_EQ(model.norms.size(), 2u);
  EXPECT_TRUE(notes_mention(model, "LayerNorm_0 normalizes axis -2"));
  EXPECT_NE(model.norms[0].stack, model.norms[1].stack) << "coordinates along different axes";
  EXPECT_EQ(model.norms[1].readers.size(), 1u);
  for (const Norm& norm : model.norms) {
    const NormSpec spec = read_norm(checkpoint, norm);
    validate(spec);
    EXPECT_EQ(spec.width, 512u);
    EXPECT_EQ(spec.gain.size(), 512u);
    EXPECT_EQ(spec.bias.size(), 512u);
    EXPECT_EQ(norm.eps_source, Source::tensors);
  }
  EXPECT_FLOAT_EQ(static_cast<float>(read_norm(checkpoint, model.norms[1]).gain[0]), 0.8214757f);
}

TEST(StatedNorms, AreNoneInPyTorchFilesWhichAreToldByNames) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/presto.pt");
  NORMSCOPE_NEED_DATA(twin, "checkpoints/presto.safetensors");
  const Model model = describe(files::Checkpoint(path));
  const Model expected = describe(files::Checkpoint(twin));
  EXPECT_EQ(model.architecture, expected.architecture);
  EXPECT_EQ(model.parameters, expected.parameters);
  ASSERT_EQ(model.norms.size(), expected.norms.size());
  for (std::size_t i = 0; i < model.norms.size(); ++i) {
    EXPECT_EQ(model.norms[i].name, expected.norms[i].name);
    EXPECT_EQ(model.norms[i].eps, expected.norms[i].eps);
  }
}

using test::Synthetic;

// What `python -m normscope convert` writes, with Keras's configuration as metadata:
// tests/python/foreign_test.py.
TEST(KerasNorms, AreThoseOfTheConfiguration) {
  const Model model = describe(files::Checkpoint(std::filesystem::path(NORMSCOPE_SOURCE_DIR) /
                                                 "tests/models/keras_model.safetensors"));
  EXPECT_EQ(model.evidence, "Keras configuration");
  std::vector<std::string> names;
  for (const Norm& norm : model.norms) names.push_back(norm.name);
  ASSERT_EQ(names, (std::vector<std::string>{"early", "no_bias", "no_gain", "root", "grouped", "over_rows"}));
  EXPECT_DOUBLE_EQ(model.norms[0].eps, 1e-4);
  EXPECT_EQ(model.norms[0].eps_source, Source::metadata);
  EXPECT_TRUE(model.norms[1].gain && !model.norms[1].bias);
  EXPECT_TRUE(!model.norms[2].gain && model.norms[2].bias);
  EXPECT_EQ(model.norms[3].kind, NormKind::rms);
  EXPECT_DOUBLE_EQ(model.norms[3].eps, 1e-6);
  EXPECT_EQ(model.norms[4].groups, 2u);
  EXPECT_EQ(model.norms[5].width, 5u);
  ASSERT_EQ(model.other_norms.size(), 1u);
  EXPECT_EQ(model.other_norms[0].kind, "BatchNorm");
}

TEST(KerasNorms, AreFoundByNameWhereThereIsNoConfiguration) {
  Synthetic file;
  file.add("layers/layer_normalization/vars/0", {8}).add("layers/layer_normalization/vars/1", {8});
  file.add("layers/dense/vars/0", {8, 8});
  const Model model = file.describe();
  ASSERT_EQ(model.norms.size(), 1u);
  EXPECT_EQ(model.norms[0].name, "layers/layer_normalization");
  EXPECT_DOUBLE_EQ(model.norms[0].eps, 1e-3);
  EXPECT_TRUE(model.norms[0].bias);
}

}  // namespace

}  // namespace normscope::models
