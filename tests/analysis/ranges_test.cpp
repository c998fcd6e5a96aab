#include <normscope/analysis/ranges.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::analysis {
namespace {

struct Case {
  NormSpec spec{};
  std::vector<double> row{};
  double bias = 0.0;
};

Case random_case(std::uint64_t seed) {
  Random random(seed);
  Case result;
  result.spec.kind = norm_kinds[random.below(norm_kinds.size())].kind;
  const bool elementwise = is_elementwise(result.spec.kind);
  result.spec.groups = elementwise ? 1 : 1 + random.below(3);
  result.spec.width = result.spec.groups * (1 + random.below(9));
  result.spec.eps = random.below(2) == 0 ? 0.0 : std::exp2(-20.0 * random.uniform());
  if (elementwise) result.spec.alpha = random.normal();
  result.spec.shift = facts(result.spec.kind).has_shift ? random.normal() : 0.0;
  for (std::size_t i = 0; i < result.spec.width; ++i) {
    result.spec.gain.push_back(random.below(6) == 0 ? 0.0 : random.normal());
    result.spec.bias.push_back(random.normal());
    result.row.push_back(random.below(6) == 0 ? 0.0 : random.normal());
  }
  result.bias = random.normal();
  return result;
}

double computed(const Case& given, std::vector<double> x) {
  const MatrixView<double> view{x.data(), 1, x.size()};
  norm::forward(given.spec, view, view);
  return std::inner_product(given.row.begin(), given.row.end(), x.begin(), given.bias);
}

double size_of(const Case& given) {
  double size = std::abs(given.bias);
  for (std::size_t i = 0; i < given.row.size(); ++i) {
    size += std::abs(given.row[i]) *
            (std::abs(given.spec.bias[i]) + given.spec.radius() * std::abs(given.spec.gain[i]));
  }
  return size;
}

RC_GTEST_PROP(Ranges, NoInputLeavesThem, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Case given = random_case(seed);
  const Interval found = interval(given.spec, given.row, given.bias);
  Random random(seed + 1);
  // The reference's own rounding.
  const double room = 1e-13 * size_of(given);
  for (int k = 0; k < 20; ++k) {
    std::vector<double> x(given.spec.width);
    const double scale = std::exp2(20.0 * random.normal());
    for (double& entry : x) entry = scale * random.normal();
    const double value = computed(given, x);
    RC_ASSERT(value >= found.lower - room);
    RC_ASSERT(value <= found.upper + room);
  }
}

RC_GTEST_PROP(Ranges, BothEndsAreAttained, ()) {
  const Case given = random_case(*rc::gen::arbitrary<std::uint64_t>());
  const Interval found = interval(given.spec, given.row, given.bias);
  const double room = 1e-11 * size_of(given);
  // An elementwise norm whose slope is zero gives one output.
  RC_PRE(!given.spec.elementwise() || std::abs(given.spec.alpha) > 1e-3);
  for (const bool upper : {false, true}) {
    std::vector<double> x(given.spec.width);
    attaining_input(given.spec, given.row, upper, x);
    RC_ASSERT(std::abs(computed(given, x) - (upper ? found.upper : found.lower)) <= room);
  }
}

TEST(Ranges, ARowOfALayerNormWithoutGain) {
  const NormSpec spec{.kind = NormKind::layer, .width = 4, .eps = 0.0};
  const Interval found = interval(spec, std::vector<double>{3.0, 1.0, 1.0, 1.0}, 0.5);
  // Π w = (1.5, -0.5, -0.5, -0.5), of length √3; r = 2.
  EXPECT_NEAR(found.upper, 0.5 + 2.0 * std::sqrt(3.0), 1e-13);
  EXPECT_NEAR(found.lower, 0.5 - 2.0 * std::sqrt(3.0), 1e-13);
  EXPECT_NEAR(found.typical, std::sqrt(0.25 + 4.0), 1e-13);
  const Interval erased = interval(spec, std::vector<double>(4, 7.0), 1.0);
  EXPECT_NEAR(erased.upper, 1.0, 1e-12);
  EXPECT_NEAR(erased.lower, 1.0, 1e-12);
}

TEST(Ranges, TypicalIsTheRootMeanSquareOverDirections) {
  const Case given = [] {
    Case made = random_case(5);
    made.spec = {.kind = NormKind::layer,
                 .width = 6,
                 .eps = 0.0,
                 .gain = {1, 2, 3, 1, 2, 3},
                 .bias = {1, 0, 0, 0, 0, 0}};
    made.row = {1, -1, 2, 0, 1, 1};
    made.bias = 0.25;
    return made;
  }();
  Random random(6);
  double square = 0.0;
  constexpr int samples = 40000;
  for (int k = 0; k < samples; ++k) {
    std::vector<double> x(6);
    for (double& entry : x) entry = random.normal();
    square += std::pow(computed(given, x), 2.0) / samples;
  }
  EXPECT_NEAR(std::sqrt(square) / interval(given.spec, given.row, given.bias).typical, 1.0, 0.02);
}

NormRanges norm_of(const std::string& name, double largest, double median,
                   std::vector<ReaderRanges> readers) {
  NormRanges result{.name = name};
  result.largest = largest;
  result.median = median;
  result.readers = std::move(readers);
  return result;
}

ReaderRanges reader_of(double lowest, double highest, double typical) {
  ReaderRanges result{.role = "query", .weight = "w", .rows = 4};
  result.lowest.bound = lowest;
  result.highest.bound = highest;
  result.typical = typical;
  return result;
}

TEST(Ranges, SummaryNamesTheExtremes) {
  ModelRanges found;
  ReaderRanges refused{.role = "key", .weight = "v", .rows = 9, .refused = "its weights are not there"};
  found.norms = {norm_of("a", 4.0, 2.0, {reader_of(-500.0, 3.0, 50.0), refused}),
                 norm_of("b", 6.0, 1.0, {reader_of(-1.0, 70000.0, 1000.0)})};
  found.norms[1].readers[0].never_positive = {1, 2};
  found.norms.push_back({.name = "c", .refused = "no gain"});
  const RangeSummary summary = summarize(found);
  EXPECT_EQ(summary.readers, 3U);
  EXPECT_EQ(summary.known, 2U);
  EXPECT_EQ(summary.largest, found.norms[1].readers.data());
  EXPECT_EQ(summary.largest_norm, &found.norms[1]);
  EXPECT_EQ(summary.least_ratio, 10.0);
  EXPECT_EQ(summary.most_ratio, 70.0);
  EXPECT_EQ(summary.never_positive, 2U);
  EXPECT_EQ(summary.most_uneven, &found.norms[1]);
  std::vector<std::size_t> beyond;
  for (const NumberType& type : number_types) beyond.push_back(overflowing(found, type));
  EXPECT_EQ(beyond, (std::vector<std::size_t>{1, 0, 2, 1}));  // float16, bfloat16, E4M3, E5M2
  EXPECT_EQ(int8_steps(10.0, 1.0), 12.7);
}

TEST(Ranges, SummaryOfNothingIsEmpty) {
  EXPECT_EQ(summarize({}).largest, nullptr);
  EXPECT_EQ(summarize({}).most_uneven, nullptr);
}

TEST(Ranges, ReadersBeyondTheBudgetAreLeftOut) {
  const files::Checkpoint checkpoint(std::filesystem::path(NORMSCOPE_SOURCE_DIR) / "models/wordlist_gpt");
  const models::Model model = models::describe(checkpoint);
  const ModelRanges found = of_model(checkpoint, model, 1, {}, 0.0);
  ASSERT_FALSE(found.norms.empty());
  for (const NormRanges& norm : found.norms) {
    EXPECT_GT(norm.largest, norm.median) << "of the norms themselves all is known";
    for (const ReaderRanges& reader : norm.readers) {
      EXPECT_TRUE(reader.left_out);
      EXPECT_EQ(reader.refused, "left out, beyond the budget for ranges");
    }
  }
  EXPECT_EQ(found.logits_refused, "left out, beyond the budget for ranges");
}

TEST(Ranges, ReadersThatDoNotFitLeaveTheBudgetToSmallerOnes) {
  models::Model model;
  model.norms.resize(2);
  for (models::Norm& norm : model.norms) norm.width = 4;
  const auto rows = [](std::uint64_t out) {
    models::Linear linear;
    linear.in = 4;
    linear.out = out;
    return linear;
  };
  model.norms[0].readers = {rows(2), rows(1000)};  // 32 multiplications, 16000
  model.norms[1].readers = {rows(3), rows(1), rows(1)};
  using Within = std::vector<std::vector<bool>>;
  EXPECT_EQ(readers_within(model, 96.0), (Within{{true, false}, {true, true, false}}));
  EXPECT_EQ(readers_within(model, 111.0), (Within{{true, false}, {true, true, false}}));
  EXPECT_EQ(readers_within(model, 112.0), (Within{{true, false}, {true, true, true}}));
  EXPECT_EQ(readers_within(model, 0.0), (Within{{false, false}, {false, false, false}}));
  EXPECT_EQ(readers_within(model, HUGE_VAL), (Within{{true, true}, {true, true, true}}));
}

TEST(Ranges, MedianFeaturesAreThoseOfTheMiddle) {
  const files::Checkpoint checkpoint(std::filesystem::path(NORMSCOPE_SOURCE_DIR) / "models/wordlist_gpt");
  const models::Model model = models::describe(checkpoint);
  const NormSpec spec = models::read_norm(checkpoint, model.norms[0]);
  const NormRanges found = of_model(checkpoint, model).norms[0];
  std::vector<double> typical;
  for (std::size_t i = 0; i < spec.width; ++i) {
    std::vector<double> row(spec.width);
    row[i] = 1.0;
    typical.push_back(interval(spec, row, 0.0).typical);
  }
  std::sort(typical.begin(), typical.end());
  EXPECT_NEAR(found.median_typical / typical[typical.size() / 2], 1.0, 1e-12);
}

}  // namespace
}  // namespace normscope::analysis
