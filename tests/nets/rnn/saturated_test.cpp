#include <normscope/nets/rnn/saturated.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/theorems.hpp>

#include "nets/rnn/textbook.hpp"

namespace normscope::nets::rnn {
namespace {

TEST(Counters, LstmWithLinearOutputIsExactAsWell) {
  Acceptor acceptor = lstm_counter(Language::anbncn);
  acceptor.cell.linear_output = true;
  EXPECT_EQ(compare(acceptor, Language::anbncn, 8).differ, 0U);
}

TEST(Counters, AreExactOnLongWords) {
  for (const Language language : {Language::anbn, Language::anbncn}) {
    std::vector<Acceptor> acceptors{lstm_counter(language), relu_counter(language)};
    if (language == Language::anbn) acceptors.push_back(lstm_threshold_counter());
    for (const Acceptor& acceptor : acceptors) {
      EXPECT_EQ(mistakes_around(acceptor, language, 10000), 0U);
    }
  }
}

TEST(Counters, ALeakingCounterIsWrong) {
  // A leaking counter is wrong on short words, and more often on long ones.
  Acceptor leaky = lstm_counter(Language::anbn);
  leaky.cell.bias(1)[0] = -1.0;
  const Comparison seen = compare(leaky, Language::anbn, 4);
  EXPECT_GT(seen.differ, 0U);
  EXPECT_NE(accepts(leaky, seen.first), contains(Language::anbn, seen.first));
  EXPECT_GT(mistakes_around(leaky, Language::anbn, 5), 0U);
}

TEST(Counters, CountInOneCoordinate) {
  const Acceptor acceptor = lstm_counter(Language::anbn);
  State state = initial(acceptor.cell);
  Random random(1);
  double count = 0.0;
  for (int i = 0; i < 100000; ++i) {
    const auto letter = static_cast<std::uint8_t>(random.below(2));
    advance_saturated(acceptor.cell, letter, state);
    count += letter == 0 ? 1.0 : -1.0;
    ASSERT_EQ(state.cell[0], count);
  }
}

RC_GTEST_PROP(Saturated, IsTheLimitOfLargeWeights, (std::uint64_t seed)) {
  Random random(seed);
  for (const CellKind kind : {CellKind::lstm, CellKind::gru, CellKind::elman_tanh}) {
    const Cell cell = test::random_cell(kind, 2, 1 + random.below(5), 1.0, random);
    const Word word = test::random_word(12, 2, random);
    State limit = initial(cell);
    for (const std::uint8_t letter : word) advance_saturated(cell, letter, limit);
    const auto distance = [&](double factor) {
      const Cell large = scaled(cell, factor);
      State state = initial(large);
      for (const std::uint8_t letter : word) advance(large, letter, state);
      double worst = 0.0;
      for (std::size_t k = 0; k < cell.width; ++k) {
        worst = std::max(worst, std::abs(state.hidden[k] - limit.hidden[k]));
        if (kind == CellKind::lstm) worst = std::max(worst, std::abs(state.cell[k] - limit.cell[k]));
      }
      return worst;
    };
    // The necessary size of the weights depends on how close a map comes to 0.
    RC_ASSERT(distance(0x1p30) <= 1e-9);
  }
}

TEST(Saturated, StatesAreIntegers) {
  Random random(2);
  for (const CellKind kind : {CellKind::lstm, CellKind::gru, CellKind::elman_tanh}) {
    for (int run = 0; run < 50; ++run) {
      const Cell cell = test::random_cell(kind, 2, 4, 1.0, random);
      State state = initial(cell);
      for (int step = 1; step <= 50; ++step) {
        advance_saturated(cell, static_cast<std::uint8_t>(random.below(2)), state);
        const std::vector<double>& values = kind == CellKind::lstm ? state.cell : state.hidden;
        for (const double value : values) {
          ASSERT_EQ(value, std::round(value));
          ASSERT_LE(std::abs(value), kind == CellKind::lstm ? step : 1);
        }
      }
    }
  }
}

TEST(Saturated, SpaceIsConstantUnlessItCounts) {
  Random random(5);
  for (int run = 0; run < 20; ++run) {
    const std::size_t width = 1 + random.below(4);
    const auto cells = [&](CellKind kind) { return test::random_cell(kind, 2, width, 1.0, random); };
    EXPECT_LE(space(cells(CellKind::elman_tanh), 60).back(), (1U << width) + 1);
    EXPECT_LE(space(cells(CellKind::gru), 60).back(), static_cast<std::size_t>(std::pow(3, width)));
  }
  // The counter's order units have at most six states for each count.
  const std::vector<std::size_t> counted = space(lstm_counter(Language::anbn).cell, 12);
  EXPECT_EQ(counted[0], 1U);
  EXPECT_EQ(counted[1], 3U);
  EXPECT_GE(counted[12], 2 * 12 + 1U);
  EXPECT_LE(counted[12], 25U * 2 * 12);
}

TEST(Saturated, HasNoLimitAtZero) {
  const Cell cell = Cell::zeros(CellKind::elman_tanh, 1, 1);
  State state = initial(cell);
  EXPECT_THROW(advance_saturated(cell, 0, state), Error);
  EXPECT_THROW(static_cast<void>(accepts(lstm_counter(Language::anbn), Word{2})), Error);
}

TEST(Saturated, TheoremTwoConvergesToACounterThatStopsAtZero) {
  const auto worst = [](double factor) { return clipped_difference_error(factor, 25); };
  EXPECT_NEAR(worst(1.0), 5.93, 0.02);
  EXPECT_NEAR(worst(3.0), 0.166, 0.002);
  EXPECT_NEAR(worst(5.0), 0.045, 0.001);
  EXPECT_LT(worst(10.0), 1.1e-3);
  EXPECT_LT(worst(20.0), 1e-7);
}

RC_GTEST_PROP(Qrnn, LayersAreMachines, (std::uint64_t seed)) {
  Random random(seed);
  const Qrnn layer = draw_layer(1 + random.below(4), 1 + random.below(3), random);
  RC_ASSERT(counter_machine(layer).counter_blind());
  // So each of its units is a rational series.
  RC_ASSERT(machine_mistakes(layer, 5, random) == 0U);
}

RC_GTEST_PROP(Qrnn, OneThresholdDoesNotReadAnBn, (std::uint64_t seed)) {
  Random random(seed);
  RC_ASSERT(bend(draw_layer(1 + random.below(4), 3, random)) == 0.0);
}

RC_GTEST_PROP(Qrnn, CannotDistinguishTheWordsOfTheSuffixAttack, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t window = 1 + random.below(5);
  const auto [in, out] = suffix_attack(window);
  RC_ASSERT(begins_with_member(in));
  RC_ASSERT(!begins_with_member(out));
  RC_ASSERT(attack_distance(draw_layer(window, 4, random)) == 0.0);
}

TEST(Qrnn, DistinguishesOtherWords) {
  // Other words of the same length give different c, so equal c is not an artefact of the comparison.
  Random random(3);
  std::size_t apart = 0;
  for (int run = 0; run < 50; ++run) {
    const Qrnn layer = draw_layer(2, 4, random);
    Word other = suffix_attack(2).first;
    std::fill(other.begin(), other.begin() + 12, std::uint8_t{1});
    apart += last_cell(layer, suffix_attack(2).first) == last_cell(layer, other) ? 0 : 1;
  }
  EXPECT_GE(apart, 20U);
}

TEST(Qrnn, TwoLayersOfThresholdsReadAnBn) {
  const Qrnn layer = anbn_layer();
  const Comparison seen = compare([&](WordView word) { return accepts_anbn(layer, word); },
                                  [](WordView word) { return contains(Language::anbn, word); }, 2, 13);
  EXPECT_EQ(seen.words, (1U << 14U) - 1);
  EXPECT_EQ(seen.differ, 0U) << text(seen.first);
}

TEST(Qrnn, TwoLayersReadAPrefix) {
  const PrefixLayers layers = prefix_layers();
  const Comparison seen =
      compare([&](WordView word) { return accepts_prefix(layers, word); },
              [](WordView word) { return word.empty() || begins_with_member(word); }, 2, 13);
  EXPECT_EQ(seen.differ, 0U) << text(seen.first);
}

TEST(Counters, AnLstmReadsAPrefix) {
  const Acceptor acceptor = lstm_prefix_counter();
  const Comparison seen =
      compare([&](WordView word) { return accepts(acceptor, word); }, begins_with_member, 2, 13);
  EXPECT_EQ(seen.differ, 0U) << text(seen.first);
}

TEST(Qrnn, HasNoLimitAtZero) {
  EXPECT_THROW(static_cast<void>(saturated(Qrnn::zeros(1, 2, 1), one_hot(Word{0}, 2))), Error);
}

}  // namespace

}  // namespace normscope::nets::rnn
