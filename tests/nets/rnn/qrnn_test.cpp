#include <normscope/nets/rnn/saturated.hpp>

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/theorems.hpp>

namespace normscope::nets::rnn {
namespace {

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
