#include <normscope/analysis/observer.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <normscope/analysis/in_model.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/norm/image.hpp>
#include <normscope/norm/kernels.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::analysis {
namespace {

std::vector<double> random_rows(std::size_t rows, std::size_t width, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> values(rows * width);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (1.0 + static_cast<double>(i % width)) * random.normal() + 0.5;
  }
  return values;
}

Summary observed(const NormSpec& spec, const std::vector<double>& x, const ObserverOptions& options = {}) {
  Observer observer(spec, options);
  observer.add(MatrixView<const double>{x.data(), x.size() / spec.width, spec.width});
  return observer.summary();
}

NormSpec with_gain(NormKind kind, std::size_t width) {
  NormSpec spec{.kind = kind, .width = width, .eps = 1e-3};
  for (std::size_t i = 0; i < width; ++i) spec.gain.push_back(0.25 + 0.5 * static_cast<double>(i % 7));
  return spec;
}

TEST(Observer, MergesAsIfOneHadSeenAll) {
  constexpr std::size_t width = 12;
  std::vector<double> x = random_rows(300, width, 9);
  x[250 * width + 4] = 1e4;
  const NormSpec spec = with_gain(NormKind::layer, width);
  const auto rows = [&](std::size_t first, std::size_t count) {
    return MatrixView<const double>{x.data() + first * width, count, width};
  };
  const ObserverOptions options{.sample = 40, .contexts = 3, .positions = 4};
  Observer whole(spec, options);
  Observer first(spec, options);
  Observer second(spec, options);
  whole.add(rows(0, 300));
  first.add(rows(0, 100));
  second.add(rows(100, 200));
  first.add_contexts(rows(0, 8), 4);
  second.add_contexts(rows(100, 20), 4);
  Observer copy(spec, options);
  copy.unpack(second.packed());
  first.merge(copy);
  const Summary merged = first.summary();
  const Summary expected = whole.summary();
  EXPECT_EQ(merged.rows, 300U);
  EXPECT_EQ(merged.sampled, 40U);
  EXPECT_EQ(first.contexts().size(), 3U);
  EXPECT_NEAR(merged.sigma.mean, expected.sigma.mean, 1e-12 * expected.sigma.mean);
  EXPECT_NEAR(merged.sigma.deviation, expected.sigma.deviation, 1e-12 * expected.sigma.mean);
  EXPECT_EQ(merged.sigma.least, expected.sigma.least);
  EXPECT_EQ(merged.sigma.most, expected.sigma.most);
  EXPECT_EQ(merged.sigma.median, expected.sigma.median);
  EXPECT_NEAR(merged.ones_share, expected.ones_share, 1e-12);
  EXPECT_EQ(merged.least_radius, expected.least_radius);
  EXPECT_EQ(merged.largest_output, expected.largest_output);
  ASSERT_EQ(merged.features.size(), expected.features.size());
  EXPECT_EQ(merged.features[0].coordinate, 4U);
  EXPECT_EQ(merged.features[0].row, 250U);
  for (std::size_t k = 0; k < merged.axes.size(); ++k) {
    EXPECT_NEAR(merged.axes[k].used, expected.axes[k].used, 1e-12);
  }
  std::size_t of_first = 0;
  for (std::size_t k = 0; k < 40; ++k) {
    const auto row = first.sample().row(k);
    for (std::size_t r = 0; r < 100; ++r)
      of_first += std::equal(row.begin(), row.end(), rows(r, 1).row(0).begin());
  }
  EXPECT_NEAR(static_cast<double>(of_first), 40.0 / 3.0, 10.0);
  Observer other(with_gain(NormKind::rms, width), options);
  EXPECT_THROW(first.merge(other), Error);
  std::vector<std::byte> bytes = copy.packed();
  bytes.pop_back();
  EXPECT_THROW(copy.unpack(bytes), Error);
  EXPECT_EQ(copy.summary().rows, 200U);
}

TEST(Observer, AgreesWithTwoPasses) {
  constexpr std::size_t width = 12;
  constexpr std::size_t rows = 500;
  const std::vector<double> x = random_rows(rows, width, 3);
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    NormSpec spec = with_gain(kind, width);
    spec.bias.assign(width, 0.3);
    const Summary summary = observed(spec, x);
    std::vector<double> sigmas;
    double energy = 0.0;
    double ones = 0.0;
    double largest = 0.0;
    for (std::size_t r = 0; r < rows; ++r) {
      double mean = 0.0;
      double square = 0.0;
      for (std::size_t i = 0; i < width; ++i) mean += x[r * width + i] / width;
      const double centre = kind == NormKind::layer ? mean : 0.0;
      for (std::size_t i = 0; i < width; ++i) {
        square += std::pow(x[r * width + i] - centre, 2.0);
        energy += std::pow(x[r * width + i], 2.0);
      }
      ones += width * mean * mean;
      sigmas.push_back(std::sqrt(square / width + spec.eps));
      for (std::size_t i = 0; i < width; ++i) {
        const double y = spec.gain_at(i) * (x[r * width + i] - centre) / sigmas.back() + spec.bias_at(i);
        largest = std::max(largest, std::abs(y));
      }
    }
    double mean = 0.0;
    for (const double sigma : sigmas) mean += sigma / rows;
    double frozen = 0.0;
    for (const double sigma : sigmas) frozen += std::pow(sigma / mean - 1.0, 2.0) / rows;
    std::sort(sigmas.begin(), sigmas.end());
    EXPECT_EQ(summary.rows, rows);
    EXPECT_NEAR(summary.sigma.mean, mean, 1e-12 * mean);
    EXPECT_NEAR(summary.frozen_scale_error, std::sqrt(frozen), 1e-12);
    EXPECT_NEAR(summary.sigma.least, sigmas.front(), 1e-14 * sigmas.front());
    EXPECT_NEAR(summary.sigma.most, sigmas.back(), 1e-14 * sigmas.back());
    EXPECT_NEAR(summary.sigma.median / sigmas[rows / 2], 1.0, 0.03);
    EXPECT_NEAR(summary.sigma.low / sigmas[rows / 20], 1.0, 0.05);
    EXPECT_NEAR(summary.ones_share, ones / energy, 1e-12);
    EXPECT_NEAR(summary.largest_output, largest, 1e-14 * largest);
    EXPECT_EQ(summary.features.front().coordinate, width - 1);
  }
}

TEST(Observer, AxesOfAllLengthsUseAllOfTheOutput) {
  const NormSpec spec = with_gain(NormKind::layer, 9);
  const Summary summary = observed(spec, random_rows(300, 9, 4), {.axes = 9});
  ASSERT_EQ(summary.axes.size(), 8U);
  double used = 0.0;
  double available = 0.0;
  for (const AxisUse& axis : summary.axes) {
    used += axis.used;
    available += axis.available;
  }
  EXPECT_NEAR(used, 1.0, 1e-12);
  EXPECT_NEAR(available, 1.0, 1e-12);
}

TEST(Observer, RowsInAPlaneUseTwoDimensions) {
  constexpr std::size_t width = 40;
  Random random(5);
  std::vector<double> x;
  for (std::size_t r = 0; r < 400; ++r) {
    const double a = random.normal();
    const double b = random.normal();
    for (std::size_t i = 0; i < width; ++i) {
      const double angle = 2.0 * 3.14159265358979 * static_cast<double>(i) / width;
      x.push_back(a * std::cos(angle) + b * std::sin(angle));
    }
  }
  const NormSpec spec{.kind = NormKind::layer, .width = width};
  const Summary summary = observed(spec, x);
  EXPECT_NEAR(summary.used_dimension, 2.0, 0.15);
  EXPECT_NEAR(summary.available_dimension, norm::effective_dimension(spec), 1e-12);
  EXPECT_EQ(summary.sampled, 256U);
}

TEST(Observer, CallsAndElementTypesChangeTheRoundingAlone) {
  constexpr std::size_t width = 6;
  const std::vector<double> x = random_rows(64, width, 6);
  const NormSpec spec = with_gain(NormKind::rms, width);
  const Summary whole = observed(spec, x);
  Observer by_rows(spec);
  for (std::size_t r = 0; r < 64; ++r) {
    by_rows.add(MatrixView<const double>{x.data() + r * width, 1, width});
  }
  EXPECT_EQ(by_rows.summary().sigma.mean, whole.sigma.mean);
  std::vector<float> floats(x.begin(), x.end());
  std::vector<norm::Float16> halves;
  std::vector<norm::Bfloat16> brains;
  for (const float value : floats) {
    halves.push_back(norm::to_float16(value));
    brains.push_back(norm::to_bfloat16(value));
  }
  Observer from_float(spec);
  from_float.add(MatrixView<const float>{floats.data(), 64, width});
  EXPECT_NEAR(from_float.summary().sigma.mean / whole.sigma.mean, 1.0, 1e-6);
  Observer from_half(spec);
  from_half.add(MatrixView<const norm::Float16>{halves.data(), 64, width});
  EXPECT_NEAR(from_half.summary().sigma.mean / whole.sigma.mean, 1.0, 1e-3);
  Observer from_brain(spec);
  from_brain.add(MatrixView<const norm::Bfloat16>{brains.data(), 64, width});
  EXPECT_NEAR(from_brain.summary().sigma.mean / whole.sigma.mean, 1.0, 1e-2);
}

TEST(Observer, BlocksAreNormalizedOnTheirOwn) {
  NormSpec spec{.kind = NormKind::layer, .width = 4, .groups = 2, .eps = 0.0};
  const Summary summary = observed(spec, {0.0, 2.0, 10.0, 30.0});
  EXPECT_EQ(summary.sigma.least, 1.0);
  EXPECT_EQ(summary.sigma.most, 10.0);
  EXPECT_NEAR(summary.ones_share, (2.0 * 1.0 + 2.0 * 400.0) / 1004.0, 1e-15);
}

TEST(Observer, RowsThatAreNotFiniteAreCountedAlone) {
  const NormSpec spec{.kind = NormKind::layer, .width = 3};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Summary summary = observed(spec, {1.0, nan, 2.0, 1.0, 2.0, 3.0, INFINITY, 0.0, 0.0});
  EXPECT_EQ(summary.rows, 1U);
  EXPECT_EQ(summary.not_finite, 2U);
  EXPECT_EQ(summary.features.front().row, 1U);
  EXPECT_EQ(observed(spec, {nan, nan, nan}).rows, 0U);
}

TEST(Observer, ConstantRowsWithoutEpsHaveNoDeviation) {
  const NormSpec spec{.kind = NormKind::layer, .width = 3, .eps = 0.0};
  const Summary summary = observed(spec, {2.0, 2.0, 2.0, 5.0, 5.0, 5.0});
  EXPECT_EQ(summary.sigma.most, 0.0);
  EXPECT_EQ(summary.sigma.median, 0.0);
  EXPECT_EQ(summary.frozen_scale_error, 0.0);
  EXPECT_EQ(summary.ones_share, 1.0);
  EXPECT_EQ(summary.used_dimension, 0.0);
}

TEST(Observer, OtherInputsAreRefused) {
  EXPECT_THROW(Observer(NormSpec{.kind = NormKind::dyt, .width = 3}), Error);
  EXPECT_THROW(Observer(NormSpec{.kind = NormKind::layer, .width = 0}), Error);
  Observer observer(NormSpec{.kind = NormKind::layer, .width = 3});
  const std::vector<double> x(4);
  EXPECT_THROW(observer.add(MatrixView<const double>{x.data(), 1, 4}), Error);
}

TEST(Observer, KeepsContextsEvenlyAndTheirFirstRows) {
  constexpr std::size_t width = 3;
  constexpr std::size_t length = 5;
  std::vector<int> kept(40);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Observer observer(with_gain(NormKind::layer, width), {.contexts = 4, .positions = 2, .seed = seed});
    for (std::size_t c = 0; c < kept.size(); c += 2) {
      std::vector<double> x(2 * length * width);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t context = c + i / (length * width);
        x[i] = static_cast<double>(context);
      }
      observer.add_contexts(MatrixView<const double>(x.data(), 2 * length, width), length);
    }
    ASSERT_EQ(observer.contexts().size(), 4U);
    EXPECT_EQ(observer.summary().rows, 0U);
    for (const MatrixView<const double> rows : observer.contexts()) {
      ASSERT_EQ(rows.rows(), 2U);
      EXPECT_EQ(rows.row(0)[0], rows.row(1)[2]);
      ++kept[static_cast<std::size_t>(rows.row(0)[0])];
    }
  }
  // 800 choices of 40: 20 each, with a deviation of 4.3.
  for (const int count : kept) EXPECT_NEAR(count, 20, 18);
}

TEST(Observer, LeavesOutShortContextsAndThoseNotFinite) {
  Observer observer(with_gain(NormKind::rms, 2), {.contexts = 4});
  const std::vector<double> x{1.0, 2.0, std::numeric_limits<double>::quiet_NaN(), 4.0};
  observer.add_contexts(MatrixView<const double>(x.data(), 2, 2), 2);
  observer.add_contexts(MatrixView<const double>(x.data(), 1, 2), 1);
  EXPECT_TRUE(observer.contexts().empty());
  EXPECT_THROW(observer.add_contexts(MatrixView<const double>(x.data(), 1, 3), 1), Error);
}

TEST(InModel, ModulesAreNormsOfTheSameNameOrOneThatEndsWithIt) {
  EXPECT_TRUE(names_norm("ln_f", "ln_f"));
  EXPECT_TRUE(names_norm("model.transformer.ln_f", "transformer.ln_f"));
  EXPECT_TRUE(names_norm("ln_f", "transformer.ln_f"));
  EXPECT_FALSE(names_norm("other_ln_f", "ln_f"));
  EXPECT_FALSE(names_norm("ln_f", ""));
}

}  // namespace
}  // namespace normscope::analysis
