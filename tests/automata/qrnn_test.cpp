#include <normscope/automata/qrnn.hpp>

#include <algorithm>
#include <array>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/automata/saturated.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "automata/textbook.hpp"

namespace normscope::automata {
namespace {

Qrnn random_layer(std::size_t window, std::size_t width, Random& random) {
  Qrnn layer = Qrnn::zeros(window, 2, width);
  for (double& parameter : layer.parameters) parameter = 2.0 * random.uniform() - 1.0;
  return layer;
}

/// c after the last letter.
std::vector<double> last(const Qrnn& layer, WordView word) {
  const QrnnStates states = saturated(layer, one_hot(word, layer.inputs));
  return {states.cell.end() - static_cast<std::ptrdiff_t>(layer.width), states.cell.end()};
}

/// Whether some prefix is a^n b^n, n > 0.
bool has_prefix(WordView word) {
  for (std::size_t n = 2; n <= word.size(); n += 2) {
    if (contains(Language::anbn, word.first(n))) return true;
  }
  return false;
}

RC_GTEST_PROP(Qrnn, LayersAreMachines, (std::uint64_t seed)) {
  Random random(seed);
  const Qrnn layer = random_layer(1 + random.below(4), 1 + random.below(3), random);
  const CounterMachine machine = counter_machine(layer);
  RC_ASSERT(machine.counter_blind());
  for (int i = 0; i < 5; ++i) {
    const Word word = test::random_word(1 + random.below(20), 2, random);
    const std::vector<double> c = last(layer, word);
    const std::vector<std::int64_t> counters = machine.run(word).counters;
    for (std::size_t k = 0; k < layer.width; ++k) RC_ASSERT(c[k] == static_cast<double>(counters[k]));
    // And so each of its units is a rational series.
    RC_ASSERT(weighted_automaton(machine, 0).value(word) == Rational(counters[0]));
  }
}

RC_GTEST_PROP(Qrnn, OneThresholdDoesNotReadAnBn, (std::uint64_t seed)) {
  // Once the window is full of b's every c moves on a line, so that w · c + b cannot be positive at m = n
  // and negative at both neighbours.
  Random random(seed);
  const std::size_t window = 1 + random.below(4);
  const Qrnn layer = random_layer(window, 3, random);
  const std::size_t n = window + 10;
  const auto c = [&](std::size_t m) { return last(layer, blocks(std::array{n, m})); };
  const std::vector<double> less = c(n - 1);
  const std::vector<double> same = c(n);
  const std::vector<double> more = c(n + 1);
  for (std::size_t k = 0; k < 3; ++k) RC_ASSERT(less[k] - 2.0 * same[k] + more[k] == 0.0);
}

RC_GTEST_PROP(Qrnn, NothingTellsTheSuffixAttackApart, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t window = 1 + random.below(5);
  const Qrnn layer = random_layer(window, 4, random);
  const auto [in, out] = suffix_attack(window);
  RC_ASSERT(has_prefix(in));
  RC_ASSERT(!has_prefix(out));
  RC_ASSERT(last(layer, in) == last(layer, out));
}

TEST(Qrnn, TwoLayersOfThresholdsReadAnBn) {
  const Qrnn layer = anbn_layer();
  for (Word word{0}; word.size() <= 13; next_word(word, 2)) {
    const std::vector<double> c = last(layer, word);
    const bool accepted = !(c[0] > 0.0) && !(c[0] < 0.0) && !(c[1] > 0.0);
    ASSERT_EQ(accepted, contains(Language::anbn, word)) << text(word);
  }
}

TEST(Qrnn, TwoLayersReadAPrefix) {
  const PrefixLayers layers = prefix_layers();
  for (Word word{0}; word.size() <= 13; next_word(word, 2)) {
    const QrnnStates first = saturated(layers.first, one_hot(word, 2));
    const QrnnStates second = saturated(layers.second, first.hidden);
    ASSERT_EQ(second.cell.back() <= 0.0, has_prefix(word)) << text(word);
  }
}

TEST(Counters, AnLstmReadsAPrefix) {
  const Acceptor acceptor = lstm_prefix_counter();
  for (Word word; word.size() <= 13; next_word(word, 2)) {
    ASSERT_EQ(accepts(acceptor, word), has_prefix(word)) << text(word);
  }
}

TEST(Qrnn, HasNoLimitAtZero) {
  EXPECT_THROW(static_cast<void>(saturated(Qrnn::zeros(1, 2, 1), one_hot(Word{0}, 2))), Error);
}

}  // namespace
}  // namespace normscope::automata
