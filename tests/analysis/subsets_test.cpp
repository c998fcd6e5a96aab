#include <normscope/analysis/subsets.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/random.hpp>

namespace normscope::analysis {
namespace {

/// A row that is the sum of components, all of which may be removed.
struct Sum {
  NormSpec norm{};
  std::vector<double> reader{}, row{}, changes{};
  std::size_t count = 0;

  [[nodiscard]] NormReading reading() const { return {norm, reader, 0.25, row}; }
  [[nodiscard]] MatrixView<const double> removals() const { return {changes.data(), count, norm.width}; }
};

Sum random_sum(std::uint64_t seed, std::size_t count, std::size_t width) {
  Random random(seed);
  Sum sum{.count = count};
  sum.norm = {.kind = random.below(2) == 0 ? NormKind::layer : NormKind::rms,
              .width = width,
              .eps = random.below(2) == 0 ? 0.0 : 1e-3};
  sum.row.resize(width);
  for (std::size_t i = 0; i < width; ++i) sum.reader.push_back(random.normal());
  for (std::size_t k = 0; k < count; ++k) {
    const double size = std::exp2(3.0 * random.normal());
    for (std::size_t i = 0; i < width; ++i) {
      const double value = size * random.normal();
      sum.changes.push_back(-value);
      sum.row[i] += value;
    }
  }
  return sum;
}

struct Removed {
  double factor = 0.0, price = 0.0;
};

/// s/s_S and the price, by their definitions.
Removed without(const Sum& sum, const std::vector<std::size_t>& set) {
  const NormReading reading = sum.reading();
  std::vector<long double> left(reading.row().begin(), reading.row().end());
  for (const std::size_t k : set) {
    const std::vector<double> change = reading.centered(sum.removals().row(k));
    for (std::size_t i = 0; i < left.size(); ++i) left[i] += change[i];
  }
  long double square = 0.0L, read = 0.0L, whole = 0.0L;
  for (std::size_t i = 0; i < left.size(); ++i) {
    square += left[i] * left[i];
    read += left[i] * reading.direction()[i];
    whole += static_cast<long double>(reading.row()[i]) * reading.row()[i];
  }
  const long double s = std::sqrt(square / reading.squared_radius() + reading.eps());
  const long double before = std::sqrt(whole / reading.squared_radius() + reading.eps());
  return {static_cast<double>(before / s), static_cast<double>(read * (1.0L / s - 1.0L / before))};
}

void expect_attained(const Sum& sum, const SubsetBound& bound, const AttainedSet& set, bool is_price) {
  RC_ASSERT(set.removed.size() <= bound.removed);
  if (set.removed.size() == sum.count) return;  // nothing is left but rounding
  const Removed found = without(sum, set.removed);
  const double value = is_price ? found.price : found.factor;
  RC_ASSERT(std::abs(value - set.value) <= 1e-6 * (1.0 + std::abs(value)));
}

RC_GTEST_PROP(Subsets, HoldForEverySet, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  Random random(seed);
  const std::size_t count = 2 + random.below(7), width = 3 + random.below(12);
  const Sum sum = random_sum(seed, count, width);
  for (const double most_work : {1e6, 0.0}) {
    const std::vector<SubsetBound> bounds =
        bound_subsets(sum.reading(), sum.removals(), {.most_removed = 20, .most_work = most_work});
    RC_ASSERT(bounds.size() == count);
    for (std::uint32_t mask = 0; mask < (1U << count); ++mask) {
      std::vector<std::size_t> set;
      for (std::size_t k = 0; k < count; ++k) {
        if ((mask >> k) % 2 == 1) set.push_back(k);
      }
      const Removed found = without(sum, set);
      if (!std::isfinite(found.factor) || found.factor > 1e12) continue;  // nothing is left but rounding
      for (std::size_t removed = std::max<std::size_t>(1, set.size()); removed <= count; ++removed) {
        const SubsetBound& bound = bounds[removed - 1];
        RC_ASSERT(bound.removed == removed);
        RC_ASSERT(bound.least <= found.factor && found.factor <= bound.most);
        RC_ASSERT(bound.least_price <= found.price && found.price <= bound.most_price);
      }
    }
    for (const SubsetBound& bound : bounds) {
      RC_ASSERT((bound.proof == SubsetProof::every_set) == (most_work > 0.0));
      expect_attained(sum, bound, bound.attained_least, false);
      expect_attained(sum, bound, bound.attained_least_price, true);
      expect_attained(sum, bound, bound.attained_most, false);
      expect_attained(sum, bound, bound.attained_most_price, true);
      if (most_work > 0.0 && bound.removed + 1 < count && bound.most < 100.0) {
        RC_ASSERT(bound.most - bound.attained_most.value <= 1e-6 * bound.most);
        RC_ASSERT(bound.attained_least.value - bound.least <= 1e-6);
      }
    }
  }
}

// 8·10⁸ sets, of which a search tries few.
TEST(Subsets, AreAttainedForFiveOfManyComponents) {
  const Sum sum = random_sum(7, 160, 64);
  for (const SubsetBound& bound :
       bound_subsets(sum.reading(), sum.removals(), {.most_removed = 5, .most_work = 2e7})) {
    EXPECT_EQ(bound.proof, SubsetProof::every_set);
    EXPECT_NEAR(bound.most, bound.attained_most.value, 1e-6 * bound.most);
    EXPECT_NEAR(bound.least, bound.attained_least.value, 1e-6);
    EXPECT_NEAR(bound.most_price, bound.attained_most_price.value, 1e-6 * (1.0 + bound.most_price));
    EXPECT_NEAR(bound.least_price, bound.attained_least_price.value, 1e-6 * (1.0 - bound.least_price));
  }
}

TEST(Subsets, AreThoseOfOneThread) {
  const Sum sum = random_sum(11, 90, 32);
  const auto bounds = [&](unsigned threads, double most_work) {
    return bound_subsets(sum.reading(), sum.removals(), {.most_removed = 5, .most_work = most_work}, {},
                         threads);
  };
  for (const double most_work : {1e8, 1e3}) {
    const std::vector<SubsetBound> one = bounds(1, most_work), three = bounds(3, most_work);
    EXPECT_EQ(one.back().proof, most_work > 1e6 ? SubsetProof::every_set : SubsetProof::relaxation);
    for (std::size_t k = 0; k < one.size(); ++k) {
      EXPECT_EQ(one[k].proof, three[k].proof);
      EXPECT_EQ(one[k].most, three[k].most);
      EXPECT_EQ(one[k].least_price, three[k].least_price);
      EXPECT_EQ(one[k].most_price, three[k].most_price);
      EXPECT_EQ(one[k].attained_most_price.removed, three[k].attained_most_price.removed);
    }
  }
}

// Many components, of which few are removed, without a search among all sets.
TEST(Subsets, RelaxationsAreNearWhatIsAttained) {
  const Sum sum = random_sum(5, 60, 200);
  const std::vector<SubsetBound> every = bound_subsets(sum.reading(), sum.removals(), {.most_removed = 3});
  const std::vector<SubsetBound> relaxed =
      bound_subsets(sum.reading(), sum.removals(), {.most_removed = 3, .most_work = 0.0});
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(every[k].proof, SubsetProof::every_set);
    EXPECT_EQ(relaxed[k].proof, SubsetProof::relaxation);
    EXPECT_LE(relaxed[k].least, every[k].least * (1.0 + 1e-9));
    EXPECT_GE(relaxed[k].most, every[k].most * (1.0 - 1e-9));
    EXPECT_GE(relaxed[k].attained_most.value, 0.99 * every[k].attained_most.value);
    EXPECT_LE(relaxed[k].most, 1.5 * every[k].most);
    EXPECT_GE(relaxed[k].least, 0.5 * every[k].least);
  }
}

// Multiples of one row, of which many sets leave the same: exchanges that only rounding tells apart must end.
TEST(Subsets, EndWhereSetsLeaveTheSame) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Sum sum = random_sum(seed, 10, 16);
    Random random(seed);
    std::vector<double>& changes = sum.changes;
    for (std::size_t k = 1; k < 9; ++k) {
      const double factor = random.below(2) == 0 ? 1.0 : -1.0;
      for (std::size_t i = 0; i < 16; ++i) changes[16 * k + i] = factor * changes[i];
    }
    for (std::size_t i = 0; i < 16; ++i) {
      double others = 0.0;
      for (std::size_t k = 0; k < 9; ++k) others += changes[16 * k + i];
      changes[16 * 9 + i] = -sum.row[i] - others;
    }
    const std::vector<SubsetBound> bounds = bound_subsets(sum.reading(), sum.removals(), {.most_removed = 8});
    ASSERT_EQ(bounds.size(), 8U);
    EXPECT_LE(bounds.back().attained_least.value, 1.0);
  }
}

}  // namespace
}  // namespace normscope::analysis
