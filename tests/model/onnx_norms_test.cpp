#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>
#include <normscope/model/stated_norm.hpp>

#include "checkpoint/onnx_files.hpp"
#include "support/data.hpp"

namespace normscope::model {
namespace {

using test::axes_attribute;
using test::integer_attribute;
using test::OnnxFile;
using test::real_attribute;

std::vector<StatedNorm> norms_of(const OnnxFile& file) { return stated_norms(open(file)); }

/// The only norm of a file.
StatedNorm norm_of(const OnnxFile& file) {
  const std::vector<StatedNorm> norms = norms_of(file);
  EXPECT_EQ(norms.size(), 1u);
  return norms.empty() ? StatedNorm{} : norms[0];
}

TEST(OnnxNorms, AreFoundAsOperators) {
  const std::vector<StatedNorm> norms = norms_of(
      OnnxFile()
          .weights("a.g", {4})
          .weights("a.b", {4})
          .node("LayerNormalization", {"x", "a.g", "a.b"}, "y")
          .node("LayerNormalization", {"x", "a.g"}, "y2", {real_attribute("epsilon", 0.5f)})
          .node("SkipLayerNormalization", {"x", "s", "a.g", "a.b"}, "y3")
          .node("SimplifiedLayerNormalization", {"x", "a.g"}, "y4", {integer_attribute("axis", -1)})
          .node("SkipSimplifiedLayerNormalization", {"x", "s", "a.g"}, "y5", {real_attribute("epsilon", 2)})
          .node("RMSNormalization", {"x", "a.g"}, "y6"));
  ASSERT_EQ(norms.size(), 6u);
  const NormKind kinds[] = {NormKind::layer, NormKind::layer, NormKind::layer,
                            NormKind::rms,   NormKind::rms,   NormKind::rms};
  const double eps[] = {1e-5, 0.5, 1e-12, 1e-5, 2, 1e-5};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(norms[i].kind, kinds[i]) << i;
    EXPECT_EQ(norms[i].eps, eps[i]) << i;
    EXPECT_EQ(norms[i].width, 4u) << i;
    EXPECT_EQ(norms[i].gain, "a.g") << i;
    EXPECT_EQ(norms[i].bias, i == 0 || i == 2 ? "a.b" : "") << i;
    EXPECT_EQ(norms[i].name, "a") << i;
  }
}

TEST(OnnxNorms, AreFoundWrittenOutAsPyTorchDoes) {
  OnnxFile file;
  const StatedNorm norm = norm_of(test::add_written_out_norm(file, {4}, -1));
  EXPECT_EQ(norm.name, "h.0.ln");
  EXPECT_EQ(norm.kind, NormKind::layer);
  EXPECT_EQ(norm.width, 4u);
  EXPECT_EQ(norm.eps, static_cast<double>(1e-6f));
  EXPECT_EQ(norm.gain, "h.0.ln.weight");
  EXPECT_EQ(norm.bias, "h.0.ln.bias");
  EXPECT_EQ(norm.axis, -1);
}

TEST(OnnxNorms, OfAMiddleAxisHaveGainsAlongIt) {
  OnnxFile file;
  EXPECT_EQ(norm_of(test::add_written_out_norm(file, {1, 4, 1}, 1)).axis, -2);
  OnnxFile negative;
  EXPECT_EQ(norm_of(test::add_written_out_norm(negative, {4, 1}, -2)).axis, -2);
}

TEST(OnnxNorms, AreNotThoseWithAGainAlongAnotherAxis) {
  OnnxFile instance;
  EXPECT_TRUE(norms_of(test::add_written_out_norm(instance, {4, 1}, -1)).empty());
}

TEST(OnnxNorms, AreFoundWithoutTheirMeanAndBetweenCasts) {
  const StatedNorm norm = norm_of(OnnxFile()
                                      .weights("n.weight", {4})
                                      .scalar("two", 2)
                                      .scalar("one", 1)
                                      .scalar("eps", 0.25f)
                                      .axes("axes", {-1})
                                      .node("Cast", {"h"}, "x")
                                      .node("Pow", {"x", "two"}, "squares")
                                      .node("ReduceMean", {"squares", "axes"}, "mean")
                                      .node("Add", {"eps", "mean"}, "padded")
                                      .node("Sqrt", {"padded"}, "root")
                                      .node("Div", {"one", "root"}, "inverse")
                                      .node("Mul", {"x", "inverse"}, "scaled")
                                      .node("Cast", {"scaled"}, "narrow")
                                      .node("Mul", {"n.weight", "narrow"}, "out"));
  EXPECT_EQ(norm.kind, NormKind::rms);
  EXPECT_EQ(norm.name, "n");
  EXPECT_EQ(norm.eps, 0.25);
  EXPECT_EQ(norm.gain, "n.weight");
  EXPECT_EQ(norm.bias, "");
}

/// x · (rsqrt(mean x² − (mean x)² + eps) · gain), as TensorFlow's converter writes it.
OnnxFile by_moments() {
  return OnnxFile()
      .weights("n/gain", {1, 4})
      .scalar("quarter", 0.25f)
      .scalar("zero", 0)
      .scalar("eps", 0.5f)
      .axes("axes", {1})
      .node("ReduceSum", {"x", "axes"}, "sum")
      .node("Mul", {"sum", "quarter"}, "mean")
      .node("Mul", {"x", "x"}, "squares")
      .node("ReduceSum", {"squares", "axes"}, "sum_squares")
      .node("Mul", {"quarter", "sum_squares"}, "mean_square")
      .node("Mul", {"mean", "mean"}, "square_mean")
      .node("Sub", {"mean_square", "square_mean"}, "difference")
      .node("Max", {"zero", "difference"}, "variance")
      .node("Reshape", {"variance", "shape"}, "column")
      .node("Add", {"column", "eps"}, "padded")
      .node("Sqrt", {"padded"}, "root")
      .node("Reciprocal", {"root"}, "inverse")
      .node("Reshape", {"mean", "shape"}, "mean_column")
      .node("Sub", {"x", "mean_column"}, "centered");
}

TEST(OnnxNorms, AreFoundByTheirMoments) {
  const StatedNorm norm = norm_of(
      by_moments().node("Mul", {"inverse", "n/gain"}, "factor").node("Mul", {"centered", "factor"}, "out"));
  EXPECT_EQ(norm.kind, NormKind::layer);
  EXPECT_EQ(norm.name, "n");
  EXPECT_EQ(norm.width, 4u);
  EXPECT_EQ(norm.axis, -1);
}

TEST(OnnxNorms, AreFoundOnceWhereGainFollowsScaling) {
  const StatedNorm norm = norm_of(
      by_moments().node("Mul", {"centered", "inverse"}, "unit").node("Mul", {"unit", "n/gain"}, "out"));
  EXPECT_EQ(norm.gain, "n/gain");
}

TEST(OnnxNorms, WithoutGainTakeTheirWidthFromTheirMeanOrReader) {
  const StatedNorm norm = norm_of(by_moments().node("Mul", {"centered", "inverse"}, "out/y"));
  EXPECT_EQ(norm.width, 4u);
  EXPECT_EQ(norm.gain, "");
  EXPECT_EQ(norm.name, "node/out");

  const auto operator_without_gain = [] { return OnnxFile().node("LayerNormalization", {"x"}, "y"); };
  EXPECT_TRUE(norms_of(operator_without_gain()).empty());
  EXPECT_EQ(norm_of(operator_without_gain().weights("w", {3, 2}).node("MatMul", {"y", "w"}, "z")).width, 3u);
}

TEST(OnnxNorms, NameTheirReaders) {
  const StatedNorm norm =
      norm_of(OnnxFile()
                  .weights("g", {4})
                  .weights("w", {4, 3})
                  .weights("w.bias", {3})
                  .weights("t", {2, 4})
                  .weights("t.bias", {2})
                  .weights("other", {3, 3})
                  .node("LayerNormalization", {"x", "g"}, "y")
                  .node("MatMul", {"y", "w"}, "product")
                  .node("Add", {"w.bias", "product"}, "sum")
                  .node("Gemm", {"y", "t", "t.bias"}, "z", {integer_attribute("transB", 1)})
                  .node("MatMul", {"y", "other"}, "misfit")
                  .node("MatMul", {"y", "computed"}, "attention"));
  ASSERT_EQ(norm.readers.size(), 2u);
  EXPECT_EQ(norm.readers[0].weight, "w");
  EXPECT_EQ(norm.readers[0].bias, "w.bias");
  EXPECT_TRUE(norm.readers[0].in_out);
  EXPECT_EQ(norm.readers[1].weight, "t");
  EXPECT_EQ(norm.readers[1].bias, "t.bias");
  EXPECT_FALSE(norm.readers[1].in_out);
}

TEST(OnnxNorms, InARowAreToldApart) {
  OnnxFile file;
  file.weights("a.w", {4}).weights("b.w", {4}).scalar("eps", 0.5f).axes("axes", {-1});
  std::string x = "x";
  for (const std::string name : {"a", "b"}) {
    file.node("Mul", {x, x}, name + "squares")
        .node("ReduceMean", {name + "squares", "axes"}, name + "mean")
        .node("Add", {name + "mean", "eps"}, name + "padded")
        .node("Sqrt", {name + "padded"}, name + "root")
        .node("Div", {x, name + "root"}, name + "unit")
        .node("Mul", {name + "unit", name + ".w"}, name + "out");
    x = name + "out";
  }
  const std::vector<StatedNorm> norms = norms_of(file);
  ASSERT_EQ(norms.size(), 2u);
  EXPECT_EQ(norms[0].gain, "a.w");
  EXPECT_EQ(norms[1].gain, "b.w");
}

TEST(OnnxNorms, AreNotOtherQuotients) {
  const auto quotient = [](const char* numerator, const char* shape) {
    return OnnxFile()
        .scalar("eps", 0.5f)
        .weights("w", {4, 4})
        .node("ReduceMean", {"x"}, "mean", {axes_attribute(-1)})
        .node("Sub", {"x", "mean"}, "centered")
        .node("Mul", {"centered", "centered"}, "squares")
        .node(shape, {"squares"}, "variance", {axes_attribute(-1)})
        .node("Add", {"variance", "eps"}, "padded")
        .node("Sqrt", {"padded"}, "root")
        .node("Div", {numerator, "root"}, "out")
        .node("MatMul", {"out", "w"}, "z");
  };
  EXPECT_EQ(norms_of(quotient("centered", "ReduceMean")).size(), 1u);
  EXPECT_TRUE(norms_of(quotient("x", "ReduceMean")).empty());
  EXPECT_TRUE(norms_of(quotient("centered", "ReduceMax")).empty());
  EXPECT_TRUE(norms_of(quotient("centered", "ReduceSum")).empty());
}

TEST(OnnxNorms, SurviveAbsurdAxes) {
  for (const std::int64_t axis :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    OnnxFile file;
    file.scalar("eps", 1).weights("g", {4}).axes("axes", {axis}).node("Mul", {"x", "x"}, "squares");
    file.node("ReduceMean", {"squares", "axes"}, "mean").node("Add", {"mean", "eps"}, "padded");
    file.node("Sqrt", {"padded"}, "root").node("Div", {"x", "root"}, "unit").node("Mul", {"unit", "g"}, "y");
    EXPECT_TRUE(norms_of(file).empty());
  }
}

TEST(OnnxNorms, SurviveGraphsThatGoInCircles) {
  EXPECT_TRUE(norms_of(OnnxFile()
                           .node("Cast", {"a"}, "b")
                           .node("Cast", {"b"}, "a")
                           .node("Mul", {"a", "m"}, "m")
                           .node("Sqrt", {"s"}, "s")
                           .node("Div", {"m", "s"}, "d"))
                  .empty());
}

TEST(OnnxNorms, AreBoundedInMemoryWhereAliasesRepeatALongName) {
  OnnxFile file;
  const std::string name(1'000'000, 'n');
  file.weights(name, {4}).node("Identity", {name}, "g");
  for (int i = 0; i < 60; ++i) file.node("RMSNormalization", {"x", "g"}, "y" + std::to_string(i));
  EXPECT_NE(test::error_of(ErrorCode::Unsupported, [&] { (void)norms_of(file); })
                .find("m.onnx: the list of the graph's norms needs more than"),
            std::string::npos);
}

TEST(OnnxNorms, OfMagikaAreItsTwo) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/magika_v3_3.onnx");
  const std::vector<StatedNorm> norms = stated_norms(checkpoint::Checkpoint(path));
  ASSERT_EQ(norms.size(), 2u);
  const std::string place = "jax2tf_get_logits_/pjit_get_logits_/MagikaV2/LayerNorm_";
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string name = place + std::to_string(i);
    EXPECT_EQ(norms[i].name, name);
    EXPECT_EQ(norms[i].kind, NormKind::layer);
    EXPECT_EQ(norms[i].width, 512u);
    EXPECT_EQ(norms[i].eps, static_cast<double>(1e-6f));
    EXPECT_EQ(norms[i].gain, name + "/Reshape_2:0");
    EXPECT_EQ(norms[i].bias, name + "/Reshape_3:0");
  }
  EXPECT_EQ(norms[0].axis, -2);
  EXPECT_TRUE(norms[0].readers.empty());
  EXPECT_EQ(norms[1].axis, -1);
  ASSERT_EQ(norms[1].readers.size(), 1u);
  EXPECT_EQ(norms[1].readers[0].weight, "jax2tf_get_logits_/Const_24:0");
  EXPECT_TRUE(norms[1].readers[0].in_out);
}

}  // namespace
}  // namespace normscope::model
