#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/evaluate.hpp>

#include "nets/labellings.hpp"
#include "nets/nets.hpp"
#include "support/scratch.hpp"
#include "support/snapshots.hpp"

namespace normscope::nets {
namespace {

using nets::evaluate;
using nets::labels;
using nets::Layer;
using nets::Net;
using nets::Precision;
using nets::trace;

using test::random_values;

RC_GTEST_PROP(Construct, EveryLabelling, (std::uint64_t seed)) {
  const std::size_t rows = *rc::gen::inRange<std::size_t>(2, 200);
  const std::uint64_t classes = *rc::gen::element<std::uint64_t>(2, 3, 10);
  const bool grid = *rc::gen::arbitrary<bool>();
  std::vector<double> x = random_values(rows * 3, seed);
  // A grid is full of exact coincidences: equal differences, equal rows.
  for (double& value : x) value = grid ? std::floor(3.0 * value) : value;
  const std::vector<std::int64_t> wanted = random_labels(rows, classes, seed + 1);
  const ConstructOptions options{.seed = seed, .first_label_wins = true};
  const Construction made = construct({x.data(), rows, 3}, wanted, options);
  RC_ASSERT(made.correct == rows);
  RC_ASSERT(made.folds.size() == made.net.layers.size());
  const std::vector<std::int64_t> given = replay<double>(made.net, {x.data(), rows, 3}, false);
  std::size_t correct = 0;
  for (std::size_t row = 0; row < rows; ++row) correct += given[row] == wanted[row] ? 1 : 0;
  RC_ASSERT(correct + made.relabelled == rows);
  std::size_t merges = 0;
  for (const Fold& fold : made.folds) merges += fold.first != no_row ? 1 : 0;
  RC_ASSERT(made.net.classes.size() == 1 || merges + made.net.classes.size() <= made.distinct);
  for (const Layer& layer : made.net.layers) RC_ASSERT(layer.out == 3U);
}

TEST(Construct, PredictsTheEvaluatorBitByBit) {
  const std::size_t rows = 300;
  const std::vector<double> x = random_values(rows * 3, 31);
  const MatrixView<const double> view(x.data(), rows, 3);
  const Construction made = construct(view, random_labels(rows, 3, 32));
  const std::vector<std::vector<double>> given = trace(made.net, view);
  std::size_t merges = 0;
  for (std::size_t l = 1; l < made.folds.size(); ++l) {
    const Fold& fold = made.folds[l];
    if (fold.first == no_row) continue;
    // The position of the pair as predicted by the construction, against the output of the layer before.
    const double near = 1.0 / given[l - 1][3 * fold.first + 2];
    const double far = 1.0 / given[l - 1][3 * fold.second + 2];
    ASSERT_EQ(fold.midpoint, near + (far - near) / 2.0) << l;
    ++merges;
  }
  EXPECT_GT(merges, 250U);
}

/// Points of the plane on one vertical line, `spread` apart from one another.
std::vector<double> crowd(std::size_t rows, double spread) {
  std::vector<double> x = random_values(2 * rows, 7);
  for (std::size_t row = 0; row < rows; ++row) {
    x[2 * row] = 1.0;
    x[2 * row + 1] *= spread;
  }
  return x;
}

TEST(Construct, CrowdedSamples) {
  const std::size_t rows = 300;
  const std::vector<std::int64_t> wanted = random_labels(rows, 3, 5);
  const std::vector<double> x = crowd(rows, 1e-25);
  const MatrixView<const double> view(x.data(), rows, 2);
  EXPECT_THROW(static_cast<void>(construct(view, wanted, {.precision = Precision::float64})), Error);
  const Construction made = construct(view, wanted);
  EXPECT_EQ(made.net.precision, Precision::double_double);
  EXPECT_EQ(made.correct, rows);
  EXPECT_GT(made.attempts, 10U);
  const Construction direct = construct(view, wanted, {.precision = Precision::double_double});
  EXPECT_EQ(direct.attempts, 1U);
  ASSERT_EQ(direct.net.layers.size(), made.net.layers.size());
  EXPECT_EQ(direct.net.layers.back().bias_low, made.net.layers.back().bias_low);
  // If float64 suffices, double-double is not used.
  const std::vector<double> easy = crowd(rows, 1.0);
  EXPECT_EQ(construct({easy.data(), rows, 2}, wanted).net.precision, Precision::float64);
}

RC_GTEST_PROP(Construct, EveryLabellingInDoubleDouble, (std::uint64_t seed)) {
  const std::size_t rows = *rc::gen::inRange<std::size_t>(2, 60);
  std::vector<double> x = random_values(rows * 3, seed);
  if (*rc::gen::arbitrary<bool>()) {
    for (double& value : x) value = std::floor(3.0 * value);
  }
  const std::vector<std::int64_t> wanted = random_labels(rows, 3, seed + 1);
  const Construction made =
      construct({x.data(), rows, 3}, wanted,
                {.seed = seed, .first_label_wins = true, .precision = Precision::double_double});
  RC_ASSERT(made.correct == rows);
}

TEST(Construct, NetsForANormWithEps) {
  const std::size_t rows = 1000;
  const std::vector<double> x = random_values(rows * 4, 21);
  const std::vector<std::int64_t> wanted = random_labels(rows, 4, 22);
  const MatrixView<const double> view(x.data(), rows, 4);
  const Construction plain = construct(view, wanted);
  for (const double eps : {1e-12, 1e-5, 1.0}) {
    const Construction made = construct(view, wanted, {.eps = eps});
    EXPECT_EQ(made.correct, rows);
    EXPECT_EQ(made.net.layers.front().norm.eps, eps);
    // Powers of two round nothing, and eps is lost beside the mean squares.
    EXPECT_EQ(evaluate(made.net, view), evaluate(plain.net, view));
  }
  Net unscaled = plain.net;
  for (Layer& layer : unscaled.layers) layer.norm.eps = 1e-5;
  EXPECT_NE(labels(unscaled, view), wanted);
  EXPECT_THROW(static_cast<void>(construct(view, wanted, {.eps = -1.0})), Error);
  const Construction both = construct({x.data(), 100, 4}, std::span(wanted).first(100),
                                      {.precision = Precision::double_double, .eps = 1e-5});
  EXPECT_EQ(both.correct, 100U);
}

TEST(Construct, PaperModeConfusesClassesOnAGrid) {
  // The line 0 1 2 3, seen through any projection: merging 1 and 2 sends 0 and 3 to one value.
  const std::vector<double> x = {0.0, 1.0, 2.0, 3.0};
  const std::vector<std::int64_t> wanted = {0, 1, 1, 1};
  const ConstructOptions published{.mode = Mode::paper, .early_stop = false};
  std::size_t confused = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    ConstructOptions options = published;
    options.seed = seed;
    confused += construct({x.data(), 4, 1}, wanted, options).correct < 4 ? 1 : 0;
    options.mode = Mode::stable;
    EXPECT_EQ(construct({x.data(), 4, 1}, wanted, options).correct, 4U);
  }
  EXPECT_GT(confused, 0U);
}

TEST(Construct, ParallelChordsAreBroken) {
  // The two diagonals' ends and the two other corners have one midpoint through every projection.
  const std::vector<double> x = {0, 0, 1, 1, 0, 1, 1, 0};
  const Construction made = construct({x.data(), 4, 2}, std::vector<std::int64_t>{0, 0, 1, 2});
  EXPECT_EQ(made.correct, 4U);
  EXPECT_LE(made.net.layers.size(), 2U);
}

TEST(Construct, FarClustersMeetNearOnesOfEveryClass) {
  // How ten classes end: one cluster of each is near, the others are ten million times as far, so that any
  // fold leaves gaps of less than 1e-9 of its size.
  const std::vector<double> x = {0.827016279059, 1.52739930579, 1.67153985953, 1.73840072676,
                                 1.76428036427,  1.7699030669,  1.82066170474, 1.8661646043,
                                 2.02973423244,  2.03295704502, 11814348.9461, 14730243.8102};
  const std::vector<std::int64_t> wanted = {7, 2, 8, 6, 5, 3, 4, 1, 0, 9, 0, 3};
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Construction made = construct({x.data(), x.size(), 1}, wanted, {.seed = seed});
    EXPECT_EQ(made.correct, x.size());
    EXPECT_EQ(made.attempts, 1U);
    EXPECT_LE(made.net.layers.size(), 6U);
  }
}

TEST(Construct, ResumesToTheSameBits) {
  const std::size_t rows = 6000;
  const std::vector<double> x = random_values(rows * 2, 3);
  const std::vector<std::int64_t> wanted = random_labels(rows, 4, 4);
  const MatrixView<const double> view(x.data(), rows, 2);
  const test::Scratch scratch;
  ConstructOptions options{.resume = scratch / "state", .save_every = 1500};
  const Construction whole = construct(view, wanted);
  std::size_t calls = 0;
  const Progress stop(
      [&](std::string_view what, std::size_t, std::size_t) { return what != "fold" || ++calls < 2; });
  for (int round = 0; round < 2; ++round) {
    EXPECT_THROW(static_cast<void>(construct(view, wanted, options, stop)), Error);
    calls = 0;
  }
  options.threads = 3;
  std::size_t first = 0;
  const Construction resumed =
      construct(view, wanted, options, Progress([&](std::string_view what, std::size_t done, std::size_t) {
                  if (what == "fold" && first == 0) first = done;
                  return true;
                }));
  EXPECT_GT(first, 5000U);
  ASSERT_EQ(resumed.net.layers.size(), whole.net.layers.size());
  for (std::size_t l = 0; l < whole.net.layers.size(); ++l) {
    ASSERT_EQ(resumed.net.layers[l].weight, whole.net.layers[l].weight);
    ASSERT_EQ(resumed.net.layers[l].bias, whole.net.layers[l].bias);
  }
  EXPECT_EQ(resumed.net.head.bias, whole.net.head.bias);
  EXPECT_EQ(resumed.folds.back().runs, whole.folds.back().runs);
  std::vector<std::int64_t> others = wanted;
  others[0] += 1;
  EXPECT_THROW(static_cast<void>(construct(view, others, options)), Error);
}

TEST(Construct, ResumesToTheSameBitsInDoubleDouble) {
  const std::size_t rows = 1200;
  const std::vector<double> x = crowd(rows, 1e-20);
  const std::vector<std::int64_t> wanted = random_labels(rows, 2, 6);
  const MatrixView<const double> view(x.data(), rows, 2);
  const test::Scratch scratch;
  const Construction whole = construct(view, wanted);
  const Progress stop([](std::string_view what, std::size_t, std::size_t) { return what != "fold"; });
  const ConstructOptions options{.resume = scratch / "state"};
  EXPECT_THROW(static_cast<void>(construct(view, wanted, options, stop)), Error);
  const Construction resumed = construct(view, wanted, options);
  EXPECT_EQ(resumed.attempts, whole.attempts);
  ASSERT_EQ(resumed.net.layers.size(), whole.net.layers.size());
  for (std::size_t l = 0; l < whole.net.layers.size(); ++l) {
    ASSERT_EQ(resumed.net.layers[l].weight, whole.net.layers[l].weight);
    ASSERT_EQ(resumed.net.layers[l].weight_low, whole.net.layers[l].weight_low);
  }
}

TEST(Construct, OneClassIsAConstantHead) {
  const std::vector<double> x = {1.0, 2.0, 3.0};
  const Construction made = construct({x.data(), 3, 1}, std::vector<std::int64_t>(3, 5));
  EXPECT_TRUE(made.net.layers.empty());
  EXPECT_EQ(labels(made.net, {x.data(), 3, 1}), std::vector<std::int64_t>(3, 5));
  EXPECT_EQ(made.correct, 3U);
}

TEST(Construct, BadInputIsNamed) {
  const auto complaint = [](std::vector<double> x, std::size_t width,
                            const std::vector<std::int64_t>& wanted) {
    try {
      static_cast<void>(construct({x.data(), x.size() / width, width}, wanted));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint({1, 2, 3, 4, 1, 2}, 2, {0, 1, 1}),
            "construct: rows 0 and 2 are equal, their labels are 0 and 1; expected one label a sample");
  EXPECT_EQ(complaint({1, 2, 3, 4, 1, 2}, 2, {0, 1, 0}), "");
  EXPECT_EQ(complaint({1, std::numeric_limits<double>::quiet_NaN()}, 1, {0, 1}),
            "construct: x[1][0] is nan, expected a finite number");
  EXPECT_EQ(complaint({1, 2}, 1, {0}), "construct: x has 2 rows, there are 1 labels");
  EXPECT_EQ(complaint({}, 1, {}), "construct: x is 0 x 1, expected at least one row and one feature");
  EXPECT_NE(complaint({1e150, 1e-30, 1e150, 0.0}, 2, {0, 1}).find("no projection"), std::string::npos);
}

TEST(ConstructState, AForgedOneLeadsToNoWrongNet) {
  const std::size_t rows = 1300;
  const std::vector<double> x = test::random_values(rows * 2, 3);
  Random random(5);
  std::vector<std::int64_t> wanted(rows);
  for (std::int64_t& label : wanted) label = static_cast<std::int64_t>(random.below(3));
  const MatrixView<const double> view(x.data(), rows, 2);
  const test::Scratch scratch;
  const ConstructOptions options{.resume = scratch / "state"};
  const Progress stop([](std::string_view what, std::size_t, std::size_t) { return what != "fold"; });
  EXPECT_THROW(static_cast<void>(construct(view, wanted, options, stop)), Error);
  std::vector<std::byte> state;
  {
    const MappedFile file(options.resume);
    state.assign(file.bytes().begin(), file.bytes().end());
  }
  const test::OpenSnapshot open(state);
  const auto write = [&](const std::vector<std::byte>& bytes) {
    AtomicFile file(options.resume);
    file.write(bytes);
    file.commit();
  };
  int made = 0;
  for (int trial = 0; trial < 16; ++trial) {
    write(open.forged(random));
    try {
      EXPECT_EQ(construct(view, wanted, options).correct, rows);
      ++made;
    } catch (const Error&) {
    }
    write(state);
    std::vector<std::byte> flipped = state;
    flipped[random.below(flipped.size())] ^= std::byte{4};
    write(flipped);
    EXPECT_THROW(static_cast<void>(construct(view, wanted, options)), Error);
  }
  EXPECT_GT(made, 0);
  EXPECT_LT(made, 16);
}

}  // namespace

}  // namespace normscope::nets
