#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/analysis/report.hpp>
#include <normscope/core/error.hpp>
#include <normscope/files/safetensors.hpp>
#include <normscope/norm/image.hpp>

#include "analysis/norms.hpp"
#include "support/data.hpp"
#include "support/gains.hpp"
#include "support/scratch.hpp"

namespace normscope::analysis {
namespace {

std::vector<double> ordinary(std::size_t width = 64) { return test::random_gain(width, "ordinary", 4); }

TEST_F(Norms, AreMeasuredAsTheGeometrySays) {
  add(ordinary());
  const Report given = report();
  ASSERT_EQ(given.norms.size(), 1U);
  const NormReport& norm = given.norms[0];
  const norm::NormImage image({.width = 64, .gain = ordinary()});
  EXPECT_EQ(norm.image->lengths, std::vector<double>(image.semi_axes().begin(), image.semi_axes().end()));
  EXPECT_EQ(norm.image->condition, image.condition());
  EXPECT_EQ(norm.image->median, image.semi_axes()[31]);
  EXPECT_EQ(norm.null_space->dim, 1U);
  double energy = 0.0;
  for (const double length : image.semi_axes()) energy += length * length;
  EXPECT_NEAR(norm.image->energy_top_1, std::pow(image.semi_axes()[0], 2) / energy, 1e-14);
}

TEST_F(Norms, AreNotComparedWithANextOneWhereTheirOrderIsNotKnown) {
  add(test::random_gain(64, "wide", 3));
  add(test::random_gain(64, "wide", 5));
  const Report ordered = report();
  ASSERT_TRUE(ordered.norms[0].next.has_value());
  EXPECT_NE(find_kind<ImageChange>(ordered.findings), nullptr);
  order_known_ = false;
  const Report given = report();
  EXPECT_FALSE(given.norms[0].next.has_value());
  EXPECT_EQ(find_kind<ImageChange>(given.findings), nullptr);
}

TEST(Report, OfANormThatCannotBeMeasuredHasTheOthers) {
  const test::Scratch scratch;
  const std::vector<double> gain = ordinary(8);
  const std::vector<std::byte> codes(8);
  files::write_safetensors(
      scratch / "m.safetensors",
      std::vector<files::NewTensor>{{"a.norm.weight", Dtype::I8, {8}, codes},
                                    {"b.norm.weight", Dtype::F64, {8}, std::as_bytes(std::span(gain))}});
  const Report given = audit(files::Checkpoint(scratch / "m.safetensors"));
  ASSERT_EQ(given.norms.size(), 2U);
  EXPECT_NE(given.norms[0].not_measured.find("is I8, expected a floating-point type"), std::string::npos);
  EXPECT_FALSE(given.norms[0].image.has_value());
  EXPECT_TRUE(given.norms[1].image.has_value());
  EXPECT_NE(find_kind<NotMeasured>(given.findings), nullptr);
}

TEST_F(Norms, ABiasIsMeasuredInRadiiOfTheImage) {
  // A sphere of radius 8, shifted by 6: the bias is most of an output from one radius on.
  std::vector<double> bias(64);
  bias[5] = 6.0;
  add(std::vector<double>(64, 1.0), bias);
  bias[5] = 16.0;
  add(std::vector<double>(64, 1.0), bias);
  const Report given = report();
  EXPECT_EQ(given.norms[0].image->rms_radius, 8.0);
  EXPECT_EQ(given.norms[0].shift_over_radius, 0.75);
  EXPECT_EQ(given.norms[1].shift_over_radius, 2.0);
  const Finding* const finding = find_kind<LargeBias>(given.findings);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->norm, 1U);
  EXPECT_EQ(std::get<LargeBias>(finding->property).shift_over_radius, 2.0);
}

TEST_F(Norms, GainsOfEverySizeAreMeasured) {
  for (const double size : {1e-310, 1e-200, 1e200, 1e307}) {
    std::vector<double> gain = ordinary(16);
    for (double& g : gain) g *= size;
    add(gain, gain);
  }
  add(std::vector<double>(16, 1e308));
  const Report given = report();
  const double condition = norm::NormImage({.width = 16, .gain = ordinary(16)}).condition();
  for (std::size_t i = 0; i < 4; ++i) {
    const NormReport& norm = given.norms[i];
    EXPECT_NEAR(norm.image->condition / condition, 1.0, i == 0 ? 1e-10 : 1e-14);
    EXPECT_NEAR(norm.image->energy_top_8, given.norms[1].image->energy_top_8, 1e-10);
    EXPECT_NEAR(*norm.shift_over_radius, 1.0, 1e-10);
    EXPECT_TRUE(std::isfinite(norm.gain->std) && std::isfinite(norm.gain->mean));
  }
  EXPECT_FALSE(given.norms[4].image);
  EXPECT_NE(find_kind<ImageOutOfRange>(given.findings), nullptr);
}

TEST_F(Norms, StatisticsAreThoseOfTheGain) {
  add({-1.0, 0.0, 2.0, 3.0, 6.0}, {3.0, 4.0, 0.0, 0.0, 0.0});
  const NormReport norm = report().norms[0];
  EXPECT_EQ(norm.gain->min, -1.0);
  EXPECT_EQ(norm.gain->max, 6.0);
  EXPECT_EQ(norm.gain->mean, 2.0);
  EXPECT_EQ(norm.gain->std, std::sqrt(6.0));
  EXPECT_EQ(norm.gain->median_abs, 2.0);
  EXPECT_EQ(norm.gain->negative, 1U);
  EXPECT_EQ(norm.gain->zero, 1U);
  EXPECT_EQ(norm.bias->length, 5.0);
}

TEST_F(Norms, APlantedAxisIsFound) {
  std::vector<double> gain = ordinary();
  gain[17] = 41.0;
  add(gain);
  const Report given = report();
  const StretchedAxis* const found = find_property<StretchedAxis>(given.findings);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->largest.coordinate, 17U);
  EXPECT_EQ(given.norms[0].image->top_axes[0].largest.coordinate, 17U);
  ASSERT_EQ(given.norms[0].outliers.size(), 1U);
  EXPECT_EQ(given.norms[0].outliers[0].gain, 41.0);
}

TEST_F(Norms, ATiltedNullDirectionIsFound) {
  std::vector<double> gain(64, 1.0);
  gain[9] = 0.01;
  add(gain);
  const Report given = report();
  // The erased direction is 1/gain: one entry of 100 beside 63 ones.
  const double expected = (100.0 + 63.0) / std::sqrt(1e4 + 63.0) / 8.0;
  EXPECT_NEAR(*given.norms[0].null_space->cosine_to_ones, expected, 1e-14);
  EXPECT_EQ(given.norms[0].null_space->top[0].coordinate, 9U);
  const NullDirection* const found = find_property<NullDirection>(given.findings);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->largest.coordinate, 9U);
}

TEST_F(Norms, FeaturesThatAreSwitchedOffAreNamedThroughDepth) {
  for (std::uint64_t i = 0; i < 6; ++i) {
    std::vector<double> gain = test::random_gain(64, "ordinary", i);
    if (i % 2 == 0) gain[21] = i == 0 ? 0.0 : -1e-3;
    if (i == 3) gain[40] = 50.0;
    if (i == 4) gain[7] = -1.0;
    add(gain);
  }
  const Report given = report();
  ASSERT_EQ(given.norms[2].switched_off.size(), 1U);
  EXPECT_EQ(given.norms[2].switched_off[0].coordinate, 21U);
  EXPECT_EQ(given.norms[2].sign_changes, 0U);
  EXPECT_EQ(given.norms[4].sign_changes, 1U);
  ASSERT_GE(given.features.size(), 2U);
  const UnusualFeature& first = given.features[0];
  EXPECT_EQ(first.coordinate, 21U);
  EXPECT_EQ(first.off, (std::vector<std::size_t>{0, 2, 4}));
  EXPECT_EQ(first.norms.size(), 6U);
  EXPECT_EQ(first.ratios[0], 0.0);
  EXPECT_GT(first.ratios[1], off_ratio);
  const auto outlier = std::find_if(given.features.begin(), given.features.end(),
                                    [](const UnusualFeature& feature) { return feature.coordinate == 40; });
  ASSERT_NE(outlier, given.features.end());
  EXPECT_EQ(outlier->outliers, std::vector<std::size_t>{3});
  const SwitchedOff* const off = find_property<SwitchedOff>(given.findings);
  ASSERT_TRUE(off != nullptr && off->recurring);
  EXPECT_EQ(off->recurring->coordinate, 21U);
  EXPECT_EQ(off->recurring->off, 3U);
  EXPECT_EQ(off->recurring->norms, 6U);
  const NegativeGain* const signs = find_property<NegativeGain>(given.findings);
  ASSERT_NE(signs, nullptr);
  EXPECT_EQ(signs->gains, 1U);
}

TEST_F(Norms, OrdinaryGainsGetFewFindings) {
  for (std::uint64_t i = 0; i < 4; ++i) {
    std::vector<double> gain(64);
    for (std::size_t j = 0; j < gain.size(); ++j)
      gain[j] = 1.0 + 0.01 * static_cast<double>((7 * j + i) % 11);
    add(gain);
  }
  for (const Finding& finding : report().findings) {
    EXPECT_TRUE(std::holds_alternative<AssumedEps>(finding.property)) << finding.property.index();
  }
}

TEST_F(Norms, AFeatureThatStandsOutEverywhereIsFound) {
  for (std::uint64_t i = 0; i < 5; ++i) {
    std::vector<double> gain = test::random_gain(64, "ordinary", i);
    if (i != 2) gain[33] = 20.0;
    add(gain);
  }
  const Report given = report();
  const SharedOutlier* const found = find_property<SharedOutlier>(given.findings);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->coordinate, 33U);
  EXPECT_EQ(found->norms, (std::vector<std::size_t>{0, 1, 3, 4}));
  EXPECT_EQ(found->of_norms, 5U);
}

TEST_F(Norms, NeighboursAreComparedWithTheNextOfTheirWidth) {
  add(ordinary());
  add(ordinary(32));
  add(ordinary());
  const Report given = report();
  ASSERT_TRUE(given.norms[0].next);
  EXPECT_EQ(given.norms[0].next->index, 2U);
  EXPECT_NEAR(given.norms[0].next->similarity, 1.0, 1e-14);
  EXPECT_NEAR(given.norms[0].next->top_axis_cosine, 1.0, 1e-14);
  EXPECT_FALSE(given.norms[1].next);
}

TEST_F(Norms, OneFindingSpeaksForManyNorms) {
  for (int i = 0; i < 30; ++i) add({1.0, 0.0, 2.0, 1.0});
  const Report given = report();
  EXPECT_EQ(std::count_if(
                given.findings.begin(), given.findings.end(),
                [](const Finding& finding) { return std::holds_alternative<ZeroGain>(finding.property); }),
            1);
  EXPECT_EQ(find_property<ZeroGain>(given.findings)->norms.size(), 30U);
}

TEST_F(Norms, GainsThatAreNotFiniteLeaveOnlyTheirNormWithoutImage) {
  add({1.0, NAN, 2.0});
  add({1.0, 3.0, 2.0});
  const Report given = report();
  EXPECT_FALSE(given.norms[0].image);
  EXPECT_EQ(given.norms[0].gain->not_finite, 1U);
  EXPECT_TRUE(given.norms[1].image);
  EXPECT_TRUE(std::holds_alternative<NotFinite>(given.findings[0].property));
}

TEST_F(Norms, ABiasThatIsNotFiniteHurtsNoImage) {
  add({1.0, 2.0, 3.0}, {INFINITY, 0.0, 0.0});
  EXPECT_TRUE(report().norms[0].image);
}

TEST_F(Norms, ABiasThatIsNotFiniteIsAFinding) {
  add({1.0, 2.0, 3.0}, {INFINITY, 0.0, 0.0});
  EXPECT_NE(find_kind<BiasNotFinite>(report().findings), nullptr);
}

TEST_F(Norms, SpheresGetNoFindingsAboutStretch) {
  for (int i = 0; i < 3; ++i) add(std::vector<double>(16, 1.0));
  const Report given = report();
  EXPECT_EQ(find_kind<StretchedAxis>(given.findings), nullptr);
  EXPECT_EQ(find_kind<ConcentratedImage>(given.findings), nullptr);
  EXPECT_EQ(find_kind<ConditionRange>(given.findings), nullptr);
  EXPECT_EQ(find_kind<ImageChange>(given.findings), nullptr);
  EXPECT_NE(find_kind<ConstantGain>(given.findings), nullptr);
}

TEST_F(Norms, ErasedCoordinatesAreNamed) {
  add({1.0, 0.0, 2.0, 0.0, 3.0});
  const NullSpace space = *report().norms[0].null_space;
  EXPECT_EQ(space.dim, 2U);
  EXPECT_FALSE(space.cosine_to_ones);
  ASSERT_EQ(space.top.size(), 2U);
  EXPECT_EQ(space.top[1].coordinate, 3U);
}

TEST_F(Norms, OutliersAreFoundBesideManyZeros) {
  std::vector<double> gain(64, 0.0);
  for (std::size_t i = 0; i < 20; ++i) gain[i] = 1.0;
  gain[3] = 9.0;
  add(gain);
  const Report given = report();
  ASSERT_EQ(given.norms[0].outliers.size(), 1U);
  EXPECT_EQ(given.norms[0].outliers[0].coordinate, 3U);
}

TEST_F(Norms, FindingsComeMostSevereFirst) {
  add(test::random_gain(64, "wide", 3));
  add(test::random_gain(64, "signed", 3));
  const Report given = report();
  for (std::size_t i = 1; i < given.findings.size(); ++i) {
    EXPECT_GE(given.findings[i - 1].severity, given.findings[i].severity);
  }
}

TEST_F(Norms, CancellingStopsTheAudit) {
  test::Scratch scratch;
  const std::vector<double> gain = ordinary();
  const std::vector<files::NewTensor> tensors{
      {"norm.weight", Dtype::F64, {64}, std::as_bytes(std::span(gain))}};
  files::write_safetensors(scratch / "m.safetensors", tensors);
  const Progress cancel([](std::string_view, std::size_t, std::size_t) { return false; });
  try {
    static_cast<void>(audit(files::Checkpoint(scratch / "m.safetensors"), 1, cancel));
    FAIL() << "expected Cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Cancelled);
  }
}

}  // namespace
}  // namespace normscope::analysis
