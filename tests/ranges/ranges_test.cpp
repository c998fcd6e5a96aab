#include <normscope/ranges/ranges.hpp>

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::ranges {
namespace {

struct Case {
  NormSpec spec{};
  std::vector<double> row{};
  double bias = 0.0;
};

Case random_case(std::uint64_t seed) {
  Random random(seed);
  constexpr NormKind kinds[] = {NormKind::layer, NormKind::rms, NormKind::spherical, NormKind::dyt,
                                NormKind::derf};
  Case result;
  result.spec.kind = kinds[random.below(5)];
  const bool elementwise = is_elementwise(result.spec.kind);
  result.spec.groups = elementwise ? 1 : 1 + random.below(3);
  result.spec.width = result.spec.groups * (1 + random.below(9));
  result.spec.eps = random.below(2) == 0 ? 0.0 : std::exp2(-20.0 * random.uniform());
  if (elementwise) result.spec.alpha = random.normal();
  result.spec.shift = result.spec.kind == NormKind::derf ? random.normal() : 0.0;
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

}  // namespace
}  // namespace normscope::ranges
