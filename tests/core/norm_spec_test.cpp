#include <normscope/core/norm_spec.hpp>

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

namespace normscope {
namespace {

/// The message with which a spec is refused; empty if it is not.
std::string refusal_of(const NormSpec& spec) {
  try {
    validate(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ValidateNormSpec, WhatDescribesALayerPasses) {
  EXPECT_EQ(refusal_of({.width = 1}), "");
  EXPECT_EQ(
      refusal_of({.kind = NormKind::rms, .width = 6, .groups = 3, .eps = 0.0, .gain = {1, 2, 3, 4, 5, 6}}),
      "");
  EXPECT_EQ(refusal_of({.kind = NormKind::dyt, .width = 2, .bias = {0, 1}, .alpha = -0.5}), "");
  EXPECT_EQ(refusal_of({.kind = NormKind::derf, .width = 2, .alpha = 2.0, .shift = 0.5}), "");
}

TEST(ValidateNormSpec, EachFieldHasItsRefusal) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal_of({}), "norm: width is 0, expected at least 1");
  EXPECT_EQ(refusal_of({.width = 6, .groups = 4}), "norm: 4 groups do not divide width 6");
  EXPECT_EQ(refusal_of({.width = 6, .groups = 0}), "norm: 0 groups do not divide width 6");
  for (const double eps : {-1.0, nan, infinite}) {
    EXPECT_NE(refusal_of({.width = 2, .eps = eps}).find("expected a finite number >= 0"), std::string::npos)
        << eps;
  }
  EXPECT_EQ(refusal_of({.width = 2, .gain = {1}}), "norm: gain has 1 entries, expected the width, 2");
  EXPECT_EQ(refusal_of({.width = 2, .bias = {0, infinite}}),
            "norm: bias[1] is inf, expected a finite number");
  EXPECT_NE(refusal_of({.width = 2, .alpha = 2.0}).find("has no alpha; expected 1"), std::string::npos);
  EXPECT_NE(refusal_of({.kind = NormKind::dyt, .width = 2, .shift = 1.0}).find("has no shift; expected 0"),
            std::string::npos);
  EXPECT_NE(refusal_of({.kind = NormKind::dyt, .width = 2, .groups = 2}).find("it is elementwise"),
            std::string::npos);
  EXPECT_EQ(refusal_of({.kind = NormKind::dyt, .width = 2, .alpha = nan}),
            "norm: alpha is nan, expected a finite number");
  EXPECT_EQ(refusal_of({.kind = NormKind::derf, .width = 2, .shift = infinite}),
            "norm: shift is inf, expected a finite number");
}

TEST(ValidateNormSpec, RowsHaveItsWidth) {
  const std::vector<double> values(12);
  const auto rows = [&](std::size_t count, std::size_t width) {
    return MatrixView<const double>(values.data(), count, width);
  };
  const NormSpec spec{.width = 3};
  EXPECT_NO_THROW(validate("who", spec, rows(2, 3), rows(2, 3)));
  EXPECT_THROW(validate("who", spec, rows(2, 2), rows(2, 3)), Error);
  EXPECT_THROW(validate("who", spec, rows(2, 3), rows(2, 2)), Error);
  EXPECT_THROW(validate("who", spec, rows(2, 3), rows(3, 3)), Error);
  EXPECT_THROW(validate("who", {.width = 0}, rows(2, 0), rows(2, 0)), Error);
}

TEST(RequireNormalizing, NamesTheKindsThatNormalize) {
  EXPECT_NO_THROW(require_normalizing("who", {.kind = NormKind::rms, .width = 2}));
  try {
    require_normalizing("who", {.kind = NormKind::dyt, .width = 2});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.substr(0, 16), "who: the norm is");
    for (const char* kind : {"layer", "rms", "spherical"})
      EXPECT_NE(text.find(kind), std::string::npos) << text;
  }
}

TEST(NormEffect, HasAName) {
  EXPECT_EQ(to_string(NormEffect::normalizes), "normalizes");
  EXPECT_EQ(to_string(NormEffect::elementwise), "elementwise");
  EXPECT_EQ(to_string(NormEffect::off), "off");
}

TEST(NormKinds, EveryNameIsReadBack) {
  for (const NormKindFacts& row : norm_kinds) EXPECT_EQ(norm_kind(row.name), row.kind);
  EXPECT_EQ(norm_kind_names().size(), norm_kinds.size());
  try {
    static_cast<void>(norm_kind("batch"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("unknown norm kind \"batch\", expected layer, rms, ", 0), 0U);
  }
}

TEST(NormKinds, ALargeEpsTurnsNormalizationOff) {
  EXPECT_EQ((NormSpec{.width = 4, .eps = 1e12}).effect(), NormEffect::off);
  EXPECT_EQ((NormSpec{.width = 4, .eps = 1.0}).effect(), NormEffect::normalizes);
  // eps of spherical is added to the squared length.
  EXPECT_EQ((NormSpec{.kind = NormKind::spherical, .width = 4, .eps = 2e8}).effect(), NormEffect::normalizes);
  EXPECT_EQ((NormSpec{.kind = NormKind::spherical, .width = 4, .eps = 4e8}).effect(), NormEffect::off);
  EXPECT_EQ((NormSpec{.kind = NormKind::dyt, .width = 4, .eps = 1e12}).effect(), NormEffect::elementwise);
}

}  // namespace

}  // namespace normscope
