#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "files/onnx_files.hpp"

namespace normscope::models {
namespace {

using test::axes_attribute;
using test::OnnxFile;
using test::Proto;

/// A LayerNorm of x [2, 3, 4] as arithmetic, of which one part may be another.
struct LayerNormAsNodes {
  std::string mean_of = "x";
  std::int64_t mean_axis = -1;
  std::string exponent = "two";
  bool squares_by_product = false;  ///< of what is centred and x
  std::string statistic = "ReduceMean";
  Proto axes = axes_attribute(-1);
  std::string factor{};  ///< of the statistic
  std::string clamp{};   ///< bound of the variance
  std::string eps = "eps";
  bool eps_is_outside = false;
  std::string numerator = "centered";
  std::string divides = "Div";
  std::string gain = "n.weight";

  [[nodiscard]] OnnxFile file() const {
    OnnxFile file;
    file.input("x", {2, 3, 4}).input("y", {2, 3, 4}).weights("n.weight", {4}).weights("other", {4});
    file.scalar("two", 2)
        .scalar("three", 3)
        .scalar("eps", 1e-6f)
        .scalar("negative", -1)
        .scalar("small", 1e-3f);
    file.scalar("fifth", 0.2f);
    file.node("ReduceMean", {mean_of}, "mean", {axes_attribute(mean_axis)})
        .node("Sub", {"x", "mean"}, "centered");
    if (squares_by_product) {
      file.node("Mul", {"centered", "x"}, "squares");
    } else {
      file.node("Pow", {"centered", exponent}, "squares");
    }
    file.node(statistic, {"squares"}, "reduced", {axes});
    file.node(factor.empty() ? "Identity" : "Mul", {"reduced", factor}, "divided");
    file.node(clamp.empty() ? "Identity" : "Max", {"divided", clamp}, "variance");
    file.node("Add", {"variance", eps}, "padded")
        .node("Sqrt", {eps_is_outside ? "variance" : "padded"}, "root");
    file.node(eps_is_outside ? "Add" : "Identity", {"root", "eps"}, "deviation");
    return file.node(divides, {numerator, "deviation"}, "unit").node("Mul", {"unit", gain}, "out");
  }

  /// Why it is no norm.
  [[nodiscard]] std::string why() const {
    const StatedNorms found = stated_norms(open(file()));
    EXPECT_TRUE(found.norms.empty());
    EXPECT_EQ(found.near_misses.size(), 1U);
    if (found.near_misses.empty()) return {};
    EXPECT_EQ(found.near_misses[0].node, "Sqrt node/root");
    return found.near_misses[0].why;
  }
};

TEST(OnnxReasons, ANormHasItsIdentityNodesAndConstants) {
  OnnxFile file;
  const StatedNorms found = stated_norms(open(test::add_written_out_norm(file, {4}, -1)));
  ASSERT_EQ(found.norms.size(), 1U);
  EXPECT_TRUE(found.near_misses.empty());
  const std::vector<std::string> expected{
      "(x - mean x) / sqrt(mean (x - mean x)\u00b2 + eps), where x is x",
      "ReduceMean node/variance along axis -1 of the squares that Pow node/squares computes",
      "Sqrt node/deviation takes the root",
      "eps is 1e-06, the constant eps, added under the root",
      "the gain is the factor h.0.ln.weight",
      "the bias is h.0.ln.bias, added to the product"};
  EXPECT_EQ(found.norms[0].reasons, expected);
  EXPECT_EQ(describe(open(file)).norms[0].reasons, expected);
}

TEST(OnnxReasons, AnOperatorHasItsAttributesAndInputs) {
  const auto reasons = [](const std::vector<Proto>& attributes) {
    const StatedNorms found = stated_norms(open(OnnxFile().weights("g", {4}).weights("b", {4}).node(
        "LayerNormalization", {"x", "g", "b"}, "y", attributes)));
    return found.norms.at(0).reasons;
  };
  EXPECT_EQ(reasons({}), (std::vector<std::string>{"operator LayerNormalization node/y",
                                                   "eps is 1e-05, the default of the operator",
                                                   "the gain is g, input 1", "the bias is b, input 2"}));
  EXPECT_EQ(reasons({test::real_attribute("epsilon", 0.5f)}).at(1), "eps is 0.5, its attribute epsilon");
}

TEST(OnnxReasons, OfNearMissesAreTheirOwn) {
  EXPECT_EQ(stated_norms(open(LayerNormAsNodes{}.file())).norms.size(), 1U);
  EXPECT_EQ((LayerNormAsNodes{.exponent = "three"}.why()),
            "the exponent of Pow node/squares is 3, expected 2");
  EXPECT_EQ((LayerNormAsNodes{.exponent = "y"}.why()),
            "the exponent of Pow node/squares, y, is not one stored number");
  EXPECT_EQ((LayerNormAsNodes{.squares_by_product = true}.why()),
            "Mul node/squares multiplies centered by x, expected a square");
  const std::string of_x = "; Mul node/out is no norm: its factor x is neither centered nor a stored vector";
  EXPECT_EQ((LayerNormAsNodes{.mean_of = "y", .numerator = "x"}.why()),
            "Sub node/centered subtracts the mean of y from x" + of_x);
  EXPECT_EQ(
      (LayerNormAsNodes{.mean_axis = -2, .numerator = "x"}.why()),
      "Sub node/centered subtracts the mean along axis -2, and squares are reduced along axis -1" + of_x);
  EXPECT_EQ((LayerNormAsNodes{.axes = Proto().bytes(1, "axes").integer(8, 1).integer(8, 2)}.why()),
            "ReduceMean node/reduced reduces 2 axes, expected one");
  EXPECT_EQ((LayerNormAsNodes{.statistic = "ReduceSum"}.why()),
            "ReduceSum node/reduced sums squares of what is centred, and no kind divides by its length");
  EXPECT_EQ((LayerNormAsNodes{.statistic = "ReduceSum", .factor = "fifth"}.why()),
            "its sums are divided by 5, of 4 features");
  EXPECT_EQ((LayerNormAsNodes{.factor = "fifth"}.why()),
            "Mul node/divided changes a mean, which is divided by the number of features already");
  EXPECT_EQ((LayerNormAsNodes{.clamp = "small"}.why()),
            "Max node/variance clamps the variance elsewhere than at 0");
  EXPECT_EQ((LayerNormAsNodes{.eps = "y"}.why()),
            "what Add node/padded adds under the root, y, is not one stored number");
  EXPECT_EQ((LayerNormAsNodes{.eps = "negative"}.why()),
            "eps is -1, the constant negative, expected a number from 0 on");
  EXPECT_EQ((LayerNormAsNodes{.eps_is_outside = true}.why()),
            "Add node/deviation adds eps to the root, expected eps under it");
  EXPECT_EQ((LayerNormAsNodes{.numerator = "x"}.why()),
            "Mul node/out is no norm: its factor x is neither x minus its mean nor a stored vector");
  EXPECT_EQ((LayerNormAsNodes{.divides = "Mul"}.why()),
            "Mul node/unit multiplies by the root, expected a division");
}

TEST(OnnxReasons, WhatIsDividedByItsOwnRootMeanSquareIsAnRmsNormWhateverItIs) {
  for (const LayerNormAsNodes& nodes :
       {LayerNormAsNodes{.mean_of = "y"}, LayerNormAsNodes{.mean_axis = -2}}) {
    const StatedNorms found = stated_norms(open(nodes.file()));
    ASSERT_EQ(found.norms.size(), 1U);
    EXPECT_EQ(found.norms[0].kind, NormKind::rms);
    EXPECT_EQ(found.norms[0].reasons.front(), "x / sqrt(mean x\u00b2 + eps), where x is centered");
  }
}

TEST(OnnxReasons, ARootOfNoStatisticIsNoNearMiss) {
  const OnnxFile file =
      OnnxFile().scalar("width", 64).node("Sqrt", {"width"}, "root").node("Div", {"scores", "root"}, "y");
  EXPECT_TRUE(stated_norms(open(file)).near_misses.empty());
}

}  // namespace
}  // namespace normscope::models
