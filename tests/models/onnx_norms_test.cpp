#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "files/onnx_files.hpp"
#include "support/data.hpp"

namespace normscope::models {
namespace {

using test::axes_attribute;
using test::integer_attribute;
using test::OnnxFile;
using test::Proto;
using test::real_attribute;

std::vector<StatedNorm> norms_of(const OnnxFile& file) { return stated_norms(open(file)).norms; }

/// The only norm of a file.
StatedNorm norm_of(const OnnxFile& file) {
  const std::vector<StatedNorm> norms = norms_of(file);
  EXPECT_EQ(norms.size(), 1u);
  return norms.empty() ? StatedNorm{} : norms[0];
}

TEST(OnnxNorms, AreFoundAsOperators) {
  const std::vector<StatedNorm> norms =
      norms_of(OnnxFile()
                   .weights("a.g", {4})
                   .weights("a.b", {4})
                   .node("LayerNormalization", {"x", "a.g", "a.b"}, "y")
                   .node("LayerNormalization", {"x", "a.g"}, "y2", {real_attribute("epsilon", 0.5f)})
                   .node("SkipLayerNormalization", {"x", "s", "a.g", "a.b"}, "y3", {}, "com.microsoft")
                   .node("SimplifiedLayerNormalization", {"x", "a.g"}, "y4", {integer_attribute("axis", -1)})
                   .node("SkipSimplifiedLayerNormalization", {"x", "s", "a.g"}, "y5",
                         {real_attribute("epsilon", 2)}, "com.microsoft")
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
  EXPECT_EQ(norm_of(test::add_written_out_norm(file.input("x", {0, 4, 3}), {1, 4, 1}, 1)).axis, -2);
  OnnxFile unknown;
  EXPECT_TRUE(norms_of(test::add_written_out_norm(unknown, {1, 4, 1}, 1)).empty())
      << "axis 1 of a value whose axes are not known";
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
                                      .node("Cast", {"h"}, "x", {test::to()})
                                      .node("Pow", {"x", "two"}, "squares")
                                      .node("ReduceMean", {"squares", "axes"}, "mean")
                                      .node("Add", {"eps", "mean"}, "padded")
                                      .node("Sqrt", {"padded"}, "root")
                                      .node("Div", {"one", "root"}, "inverse")
                                      .node("Mul", {"x", "inverse"}, "scaled")
                                      .node("Cast", {"scaled"}, "narrow", {test::to(10)})
                                      .node("Mul", {"n.weight", "narrow"}, "out"));
  EXPECT_EQ(norm.kind, NormKind::rms);
  EXPECT_EQ(norm.name, "n");
  EXPECT_EQ(norm.eps, 0.25);
  EXPECT_EQ(norm.gain, "n.weight");
  EXPECT_EQ(norm.bias, "");
}

/// x · (rsqrt(mean x² − (mean x)² + eps) · gain), as TensorFlow's converter writes it.
OnnxFile by_moments(std::uint64_t width = 4) {
  return OnnxFile()
      .input("x", {0, width})
      .weights("n/gain", {1, 4})
      .scalar("quarter", 0.25f)
      .scalar("zero", 0)
      .scalar("eps", 0.5f)
      .axes("axes", {1})
      .axes("shape", {-1, 1})
      .node("ReduceSum", {"x", "axes"}, "sum", {integer_attribute("keepdims", 0)})
      .node("Mul", {"sum", "quarter"}, "mean")
      .node("Mul", {"x", "x"}, "squares")
      .node("ReduceSum", {"squares", "axes"}, "sum_squares", {integer_attribute("keepdims", 0)})
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
  EXPECT_TRUE(norms_of(by_moments(5).node("Mul", {"centered", "inverse"}, "out/y")).empty())
      << "a quarter of a sum of five is no mean";

  const auto operator_without_gain = [] { return OnnxFile().node("LayerNormalization", {"x"}, "y"); };
  EXPECT_TRUE(norms_of(operator_without_gain()).empty());
  EXPECT_EQ(norm_of(operator_without_gain().weights("w", {3, 2}).node("MatMul", {"y", "w"}, "z")).width, 3u);
}

/// An operator of a file with a gain and a bias of those extents.
OnnxFile one_operator(const std::vector<std::uint64_t>& gain, const std::vector<std::uint64_t>& bias,
                      const std::vector<Proto>& attributes = {}) {
  return OnnxFile()
      .weights("n.g", gain)
      .weights("n.b", bias)
      .node("LayerNormalization", {"x", "n.g", "n.b"}, "y", attributes);
}

/// Why the only operator of a file is not understood.
std::string why_not(const OnnxFile& file) {
  const StatedNorms norms = stated_norms(open(file));
  EXPECT_TRUE(norms.norms.empty());
  EXPECT_EQ(norms.not_understood.size(), 1u);
  return norms.not_understood.empty() ? "" : norms.not_understood[0];
}

TEST(OnnxNorms, OverSeveralLastAxesHaveParametersOfThatShape) {
  const Proto last_two = integer_attribute("axis", -2);
  EXPECT_EQ(norm_of(one_operator({3, 4}, {3, 4}, {last_two})).width, 12u);
  EXPECT_EQ(norm_of(one_operator({1, 3, 4}, {3, 4}, {last_two})).width, 12u);
  EXPECT_EQ(norm_of(one_operator({3, 4}, {3, 4}, {integer_attribute("axis", 1)}).input("x", {0, 3, 4})).axis,
            -1);
  // A gain that is repeated along the first of both axes.
  EXPECT_EQ(why_not(one_operator({4}, {4}, {last_two}).input("x", {1, 3, 4})),
            "LayerNormalization node/y: n.g does not have the shape of what is normalized");
  EXPECT_NE(why_not(one_operator({4}, {4}, {last_two})), "");
  EXPECT_NE(why_not(one_operator({3, 4}, {4}, {last_two})), "");
  EXPECT_NE(why_not(one_operator({3, 4}, {3, 4})), "") << "a gain for each position";
  EXPECT_NE(why_not(one_operator({1}, {1})), "") << "one gain for features whose number is not known";
  EXPECT_NE(why_not(one_operator({4}, {4}).input("x", {0, 5})), "");
  // As many numbers as are normalized, but along other axes.
  EXPECT_NE(why_not(one_operator({4, 3}, {4, 3}, {last_two}).input("x", {0, 3, 4})), "");
  EXPECT_NE(why_not(one_operator({4, 1}, {4, 1}).input("x", {0, 4, 4})), "");
  EXPECT_EQ(why_not(one_operator({4}, {4}, {integer_attribute("axis", 1)})),
            "LayerNormalization node/y: its axis is counted from the first, and the graph does not state how "
            "many there "
            "are");
  EXPECT_NE(why_not(one_operator({4}, {4}, {integer_attribute("axis", 5)}).input("x", {0, 4})), "");
}

TEST(OnnxNorms, AreNotOperatorsThatAreNotKnownInFull) {
  const std::string unknown = "LayerNormalization node/y: it has an attribute or an input that is not known";
  EXPECT_EQ(why_not(one_operator({4}, {4}, {integer_attribute("unbiased", 1)})), unknown);
  EXPECT_EQ(why_not(one_operator({4}, {4}, {integer_attribute("epsilon", 1)})), unknown);
  EXPECT_EQ(why_not(OnnxFile().weights("g", {4}).node("LayerNormalization", {"x", "g", "g", "g"}, "y")),
            unknown);
  EXPECT_EQ(why_not(OnnxFile().weights("b", {4}).node("LayerNormalization", {"x", "computed", "b"}, "y")),
            "LayerNormalization node/y: computed is not a stored gain");
  EXPECT_EQ(why_not(OnnxFile().weights("g", {4}).node("LayerNormalization", {"x", "g", "computed"}, "y")),
            "LayerNormalization node/y: computed is not a stored bias");
  EXPECT_EQ(why_not(OnnxFile().node("LayerNormalization", {"x"}, "y")),
            "LayerNormalization node/y: its width is not known");
  EXPECT_NE(why_not(one_operator({4}, {4}, {real_attribute("epsilon", -1)})), "");
  const auto other = [](const std::string& domain) {
    return OnnxFile().weights("g", {4}).node("LayerNormalization", {"x", "g"}, "y", {}, domain);
  };
  EXPECT_EQ(norms_of(other("com.microsoft")).size(), 1u);
  EXPECT_TRUE(norms_of(other("mine")).empty());
  EXPECT_TRUE(norms_of(other("").function("", "LayerNormalization")).empty()) << "a function of the file";
  EXPECT_TRUE(
      norms_of(OnnxFile().weights("g", {4}).node("SkipLayerNormalization", {"x", "s", "g"}, "y")).empty());
}

TEST(OnnxNorms, MayHaveAGainToWhichTheGraphAddsOne) {
  const auto file = [](float added, const std::string& op) {
    return OnnxFile()
        .weights("n.weight", {4})
        .scalar("added", added)
        .scalar("eps", 0.25f)
        .node("Mul", {"x", "x"}, "squares")
        .node("ReduceMean", {"squares"}, "mean", {axes_attribute(-1)})
        .node("Add", {"mean", "eps"}, "padded")
        .node("Sqrt", {"padded"}, "root")
        .node("Div", {"x", "root"}, "unit")
        .node(op, {"n.weight", "added"}, "gain")
        .node("Mul", {"unit", "gain"}, "y");
  };
  const StatedNorm norm = norm_of(file(1, "Add"));
  EXPECT_EQ(norm.gain, "n.weight");
  EXPECT_EQ(norm.gain_offset, 1.0);
  EXPECT_EQ(norm.kind, NormKind::rms);
  EXPECT_TRUE(norms_of(file(2, "Add")).empty());
  EXPECT_TRUE(norms_of(file(1, "Sub")).empty());
}

/// Arithmetic in which one operator is exchanged: x / root(x) · g.
struct Written {
  std::string statistic = "ReduceMean";
  Proto axes = axes_attribute(-1);
  std::string clamp = "Identity";  ///< of the variance, with `bound`
  std::string bound = "zero";
  std::string after_root = "Identity";  ///< with eps
  bool pads = true;                     ///< adds eps under the root
  std::string gain = "n.g";

  [[nodiscard]] OnnxFile file() const {
    OnnxFile file;
    file.weights("n.g", {4})
        .weights("column", {4, 1})
        .scalar("zero", 0)
        .scalar("eps", 0.25f)
        .scalar("half", 0.5f);
    file.axes("row", {4}).axes("as_column", {4, 1}).axes("as_row", {1, 4}).scalar("small", 1e-3f);
    file.node("Reshape", {"n.g", "as_column"}, "turned").node("Reshape", {"n.g", "as_row"}, "laid");
    file.node("Max", {"n.g", "zero"}, "clamped_gain").node("Cast", {"n.g"}, "whole", {test::to(7)});
    file.node("Mul", {"x", "x"}, "squares").node(statistic, {"squares"}, "statistic", {axes});
    if (clamp == "Identity") {
      file.node("Identity", {"statistic"}, "variance");
    } else {
      file.node(clamp, {"statistic", bound}, "variance");
    }
    file.node("Add", {"variance", "eps"}, "sum").node("Sqrt", {pads ? "sum" : "variance"}, "deviation");
    if (after_root == "Identity") {
      file.node("Identity", {"deviation"}, "root");
    } else {
      file.node(after_root, {"deviation", "eps"}, "root");
    }
    return file.node("Div", {"x", "root"}, "unit").node("Mul", {"unit", gain}, "y");
  }
  [[nodiscard]] std::size_t found() const { return norms_of(file()).size(); }
};

TEST(OnnxNorms, AreOnlyArithmeticThatIsKnownInFull) {
  EXPECT_EQ(norm_of(Written{}.file()).kind, NormKind::rms);
  EXPECT_EQ(norm_of(Written{.pads = false}.file()).eps, 0.0);
  EXPECT_EQ(norm_of(Written{.statistic = "ReduceSum"}.file()).kind, NormKind::spherical);
  EXPECT_EQ(norm_of(Written{.statistic = "ReduceSum", .pads = false}.file()).eps, 0.0);
  EXPECT_EQ(Written{.clamp = "Max"}.found(), 1u);
  EXPECT_EQ(Written{.clamp = "Clip"}.found(), 1u);
  EXPECT_EQ((Written{.clamp = "Max", .bound = "small"}.found()), 0u);
  EXPECT_EQ((Written{.clamp = "Clip", .bound = "small"}.found()), 0u);
  EXPECT_EQ((Written{.clamp = "Min"}.found()), 0u);
  EXPECT_EQ(Written{.after_root = "Add"}.found(), 0u) << "eps outside the root";
  EXPECT_EQ(Written{.after_root = "Max"}.found(), 0u);
  EXPECT_EQ((Written{.axes = Proto().bytes(1, "axes").integer(8, 1).integer(8, 2)}.found()), 0u);
  EXPECT_EQ(Written{.gain = "laid"}.found(), 1u);
  EXPECT_EQ(Written{.gain = "turned"}.found(), 0u) << "a gain that is reshaped to another axis";
  EXPECT_EQ(Written{.gain = "clamped_gain"}.found(), 0u);
  EXPECT_EQ(Written{.gain = "whole"}.found(), 0u) << "a gain without its fractions";
  EXPECT_EQ(Written{.gain = "half"}.found(), 0u);
}

TEST(OnnxNorms, MayDivideByALength) {
  const auto file = [](const std::vector<Proto>& attributes, const std::string& root) {
    return OnnxFile()
        .weights("n.g", {4})
        .scalar("small", 1e-12f)
        .node("ReduceL2", {"x"}, "length", attributes)
        .node("Max", {"length", "small"}, "clamped")
        .node("Div", {"x", root}, "unit")
        .node("Mul", {"unit", "n.g"}, "y");
  };
  const StatedNorm norm = norm_of(file({axes_attribute(-1)}, "length"));
  EXPECT_EQ(norm.kind, NormKind::spherical);
  EXPECT_EQ(norm.eps, 0.0);
  EXPECT_EQ(norm.width, 4u);
  EXPECT_TRUE(norms_of(file({axes_attribute(-1)}, "clamped")).empty());
  EXPECT_TRUE(norms_of(file({}, "length")).empty()) << "the length of everything";
  EXPECT_TRUE(norms_of(file({axes_attribute(-1), integer_attribute("keepdims", 0)}, "length")).empty());
}

/// LayerNorm of x [2, 3, 4] whose statistics are reduced without their axis and put beside x by `shape`.
OnnxFile without_axis(const std::string& op, const std::vector<std::int64_t>& shape,
                      const std::vector<std::uint64_t>& extents = {2, 3, 4}) {
  const std::vector<Proto> dropped = {axes_attribute(-1), integer_attribute("keepdims", 0)};
  return OnnxFile()
      .input("x", extents)
      .weights("n.g", {4})
      .scalar("eps", 0.25f)
      .axes("shape", shape)
      .node("Mul", {"x", "x"}, "squares")
      .node("ReduceMean", {"squares"}, "mean", dropped)
      .node(op, {"mean", "shape"}, "column")
      .node("Add", {"column", "eps"}, "padded")
      .node("Sqrt", {"padded"}, "root")
      .node("Div", {"x", "root"}, "unit")
      .node("Mul", {"unit", "n.g"}, "y");
}

TEST(OnnxNorms, HaveStatisticsThatLieBesideTheirRows) {
  EXPECT_EQ(norms_of(without_axis("Unsqueeze", {-1})).size(), 1u);
  EXPECT_EQ(norms_of(without_axis("Unsqueeze", {2})).size(), 1u);
  EXPECT_EQ(norms_of(without_axis("Reshape", {2, 3, 1})).size(), 1u);
  EXPECT_EQ(norms_of(without_axis("Reshape", {-1, 3, 1})).size(), 1u);
  EXPECT_EQ(norms_of(without_axis("Reshape", {-1, 3, 1}, {0, 3, 4})).size(), 1u);
  EXPECT_EQ(norms_of(without_axis("Unsqueeze", {0})).size(), 0u);
  EXPECT_EQ(norms_of(without_axis("Unsqueeze", {1})).size(), 0u);
  EXPECT_EQ(norms_of(without_axis("Reshape", {3, 2, 1})).size(), 0u);
  EXPECT_EQ(norms_of(without_axis("Reshape", {2, 1, 3})).size(), 0u);
  EXPECT_EQ(norms_of(without_axis("Identity", {2, 3, 1})).size(), 0u) << "no axis is added";
  EXPECT_EQ(norms_of(without_axis("Reshape", {-1, 3, 1}, {0, 0, 4})).size(), 0u);
}

TEST(OnnxNorms, DivideByTheNumberOfWhatTheySum) {
  const auto file = [](float count) {
    return OnnxFile()
        .weights("n.g", {4})
        .scalar("count", count)
        .node("ReduceMean", {"x"}, "mean", {axes_attribute(-1)})
        .node("Sub", {"x", "mean"}, "centered")
        .node("Mul", {"centered", "centered"}, "squares")
        .node("ReduceSum", {"squares"}, "sum", {axes_attribute(-1)})
        .node("Div", {"sum", "count"}, "variance")
        .node("Sqrt", {"variance"}, "root")
        .node("Div", {"centered", "root"}, "unit")
        .node("Mul", {"unit", "n.g"}, "y");
  };
  EXPECT_EQ(norm_of(file(4)).kind, NormKind::layer);
  EXPECT_TRUE(norms_of(file(3)).empty()) << "the unbiased variance";
  EXPECT_TRUE(norms_of(file(4.5f)).empty());
}

TEST(OnnxNorms, HaveMeanAndVarianceOfOneAxis) {
  OnnxFile file;
  file.weights("n.g", {4}).node("ReduceMean", {"x"}, "mean", {axes_attribute(-2)});
  file.node("Sub", {"x", "mean"}, "centered").node("Mul", {"centered", "centered"}, "squares");
  file.node("ReduceMean", {"squares"}, "variance", {axes_attribute(-1)}).node("Sqrt", {"variance"}, "root");
  file.node("Div", {"centered", "root"}, "unit").node("Mul", {"unit", "n.g"}, "y");
  EXPECT_EQ(norm_of(file).kind, NormKind::rms) << "of what was centered along another axis";
}

TEST(OnnxNorms, ArePreciseAboutCasts) {
  const auto file = [](std::int64_t type) {
    return OnnxFile()
        .weights("n.g", {4})
        .scalar("eps", 1e-6f)
        .node("Cast", {"eps"}, "narrow", {test::to(type)})
        .node("Mul", {"x", "x"}, "squares")
        .node("ReduceMean", {"squares"}, "mean", {axes_attribute(-1)})
        .node("Add", {"mean", "narrow"}, "padded")
        .node("Sqrt", {"padded"}, "root")
        .node("Div", {"x", "root"}, "unit")
        .node("Mul", {"unit", "n.g"}, "y");
  };
  EXPECT_EQ(norm_of(file(1)).eps, static_cast<double>(1e-6f));
  EXPECT_EQ(norm_of(file(11)).eps, static_cast<double>(1e-6f));
  EXPECT_TRUE(norms_of(file(10)).empty()) << "1e-6 is no number of 16 bits";
  EXPECT_TRUE(norms_of(file(7)).empty());
}

TEST(OnnxNorms, SayThatACallerMayGiveTheirParameters) {
  EXPECT_FALSE(norm_of(one_operator({4}, {4})).is_default);
  EXPECT_TRUE(norm_of(one_operator({4}, {4}).input("n.b", {4})).is_default);
}

TEST(OnnxNorms, AreReadByMapsThatAreUnderstood) {
  const auto norm = [](const std::string& op, const std::string& added,
                       const std::vector<Proto>& attributes) {
    OnnxFile file;
    file.weights("g", {4}).weights("w", {4, 3}).weights("t", {3, 4}).weights("c", {3}).weights("one", {1});
    file.weights("rows", {3, 1}).axes("flat", {-1, 4}).axes("wrong", {-1, 2});
    file.node("LayerNormalization", {"x", "g"}, "y").node("Reshape", {"y", "flat"}, "rows_of_y");
    file.node("Reshape", {"y", "wrong"}, "halves").node("Transpose", {"t"}, "turned");
    if (op == "Gemm") return norm_of(file.node(op, {"rows_of_y", "w", added}, "z", attributes));
    if (op == "Add")
      return norm_of(file.node("MatMul", {"y", "w"}, "product").node(op, {"product", added}, "z"));
    return norm_of(file.node("MatMul", {op, added}, "z"));
  };
  EXPECT_EQ(norm("Gemm", "c", {}).readers.at(0).bias, "c");
  EXPECT_EQ(norm("Gemm", "", {}).readers.at(0).bias, "");
  EXPECT_EQ(norm("Gemm", "c", {real_attribute("alpha", 1), real_attribute("beta", 1)}).readers.size(), 1u);
  EXPECT_EQ(norm("Add", "c", {}).readers.at(0).bias, "c");
  EXPECT_TRUE(norm("y", "turned", {}).readers.at(0).weight == "t" &&
              !norm("y", "turned", {}).readers.at(0).in_out);
  EXPECT_EQ(norm("rows_of_y", "w", {}).readers.size(), 1u);
  EXPECT_TRUE(norm("halves", "w", {}).readers.empty());
  using Texts = std::vector<std::string>;
  const auto others = [&](const std::string& op, const std::string& added,
                          const std::vector<Proto>& attributes = {}) {
    const StatedNorm found = norm(op, added, attributes);
    EXPECT_TRUE(found.readers.empty());
    return found.other_readers;
  };
  EXPECT_EQ(others("Gemm", "c", {real_attribute("alpha", 4)}), Texts{"w (Gemm with alpha 4)"});
  EXPECT_EQ(others("Gemm", "c", {real_attribute("beta", -3)}), Texts{"w (Gemm with beta -3)"});
  EXPECT_EQ(others("Gemm", "c", {integer_attribute("transA", 1)}), Texts{"w (Gemm with transA)"});
  EXPECT_EQ(others("Gemm", "c", {integer_attribute("broadcast", 1)}),
            Texts{"w (Gemm with an attribute or an input that is not known)"});
  EXPECT_EQ(others("Gemm", "one"), Texts{"w (Gemm whose one is not one stored number for each output)"});
  EXPECT_EQ(others("Gemm", "rows"), Texts{"w (Gemm whose rows is not one stored number for each output)"});
  EXPECT_EQ(others("Gemm", "computed"),
            Texts{"w (Gemm whose computed is not one stored number for each output)"});
  EXPECT_EQ(others("Add", "one"), Texts{"w (the one that is added is not one number for each output)"});
  EXPECT_EQ(others("Add", "rows"), Texts{"w (the rows that is added is not one number for each output)"});
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
  ASSERT_EQ(norms_of(quotient("centered", "ReduceMean")).size(), 1u);
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
                           .node("Cast", {"a"}, "b", {test::to()})
                           .node("Cast", {"b"}, "a", {test::to()})
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
  const StatedNorms stated = stated_norms(files::Checkpoint(path));
  EXPECT_TRUE(stated.not_understood.empty());
  const std::vector<StatedNorm>& norms = stated.norms;
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
}  // namespace normscope::models
