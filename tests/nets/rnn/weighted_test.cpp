#include <normscope/nets/rnn/language.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/counter_machine.hpp>
#include <normscope/nets/rnn/theorems.hpp>
#include <normscope/nets/rnn/weighted.hpp>

namespace normscope::nets::rnn {
namespace {

TEST(Language, HoldsItsMembersAndNothingElse) {
  for (const Language language : {Language::anbn, Language::anbncn}) {
    std::set<Word> members;
    for (std::size_t n = 0; n <= 4; ++n) members.insert(member(language, n));
    for (Word word; word.size() <= 9; next_word(word, letters(language))) {
      EXPECT_EQ(contains(language, word), members.contains(word)) << text(word);
    }
  }
}

TEST(Language, WordsComeInOrderOfLength) {
  std::vector<std::string> words;
  for (Word word; word.size() <= 2; next_word(word, 2)) words.push_back(text(word));
  EXPECT_EQ(words, (std::vector<std::string>{"", "a", "b", "aa", "ab", "ba", "bb"}));
}

TEST(Language, TextRoundTrips) {
  EXPECT_EQ(text(word("abcab", 3)), "abcab");
  EXPECT_THROW(static_cast<void>(word("abc", 2)), Error);
  EXPECT_THROW(static_cast<void>(word("A", 2)), Error);
  EXPECT_EQ(language("anbncn"), Language::anbncn);
  EXPECT_THROW(static_cast<void>(language("dyck")), Error);
}

TEST(Language, NearMembersAreAFifthMembers) {
  for (const auto& [language, share] : {std::pair{Language::anbn, 0.2}, std::pair{Language::anbncn, 0.04}}) {
    const auto words = near_members(language, 20000, 200, 3);
    const auto members =
        std::count_if(words.begin(), words.end(), [](const Labelled& one) { return one.member; });
    // Three deviations; an exponent below 0 is 0, which adds a few members.
    EXPECT_NEAR(static_cast<double>(members) / 20000.0, share, 3.0 * std::sqrt(share / 20000.0) + 0.003);
    EXPECT_EQ(words[7].word, near_members(language, 20000, 200, 3)[7].word);
  }
}

TEST(Weighted, ReadsBinaryNumbers) {
  const WeightedAutomaton automaton = binary_value();
  for (Word word; word.size() <= 12; next_word(word, 2)) {
    std::int64_t value = 0;
    for (const std::uint8_t digit : word) value = 2 * value + digit;
    ASSERT_EQ(automaton.value(word), Rational(value)) << text(word);
  }
  EXPECT_EQ(automaton.value(Word(126, 1)).value(), 0x1p126);
  EXPECT_THROW(static_cast<void>(automaton.value(Word(140, 1))), Error);
}

TEST(Weighted, RecognizesAnBn) {
  const WeightedAutomaton automaton = anbn_series();
  for (Word word; word.size() <= 12; next_word(word, 2)) {
    const Rational value = automaton.value(word);
    ASSERT_EQ(value, anbn_value(word)) << text(word);
    ASSERT_EQ(value.sign() > 0, contains(Language::anbn, word)) << text(word);
  }
}

TEST(Hankel, RankIsTheNumberOfStates) {
  const auto block = [](const Series& f, std::size_t longest) {
    const std::vector<Word> words = all_words(2, longest);
    return hankel_rank(f, words, words);
  };
  const WeightedAutomaton binary = binary_value();
  EXPECT_EQ(block([&](WordView word) { return binary.value(word); }, 4), 2U);
  // Seven, reached by words of two letters: no automaton has fewer states than `anbn_series`.
  std::vector<std::size_t> ranks;
  for (std::size_t longest = 1; longest <= 4; ++longest) ranks.push_back(block(anbn_value, longest));
  EXPECT_EQ(ranks, (std::vector<std::size_t>{3, 7, 7, 7}));
}

TEST(Hankel, CountersThatStopAtZeroAreNotRational) {
  // Rows a^i, columns b^j: the rank grows with the block, so no automaton has enough states.
  for (const std::size_t n : {4U, 8U, 12U}) {
    const std::vector<Word> as = powers(0, n);
    const std::vector<Word> bs = powers(1, n);
    EXPECT_EQ(hankel_rank(clipped_count, as, bs), n - 1);
    EXPECT_EQ(hankel_rank(stack_reading, as, bs), n - 1);
    EXPECT_EQ(hankel_rank(attention_reading, as, bs), n);
  }
}

TEST(Hankel, AStackWithoutAFloorIsRational) {
  // As printed, (1/2)^(#a − #b) − 1 has rank 2 [Merrill et al. 2020, definition 7].
  const std::vector<Word> words = all_words(2, 4);
  EXPECT_EQ(hankel_rank(stack_reading_as_printed, words, words), 2U);
}

RC_GTEST_PROP(Hankel, RankOfAProductIsAtMostItsMiddle, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t rows = 1 + random.below(8);
  const std::size_t columns = 1 + random.below(8);
  const std::size_t middle = 1 + random.below(4);
  const auto entries = [&](std::size_t size) {
    std::vector<Rational> values;
    for (std::size_t i = 0; i < size; ++i) {
      values.emplace_back(static_cast<std::int64_t>(random.below(1001)) - 500, 1);
    }
    return values;
  };
  const std::vector<Rational> a = entries(rows * middle);
  const std::vector<Rational> b = entries(middle * columns);
  std::vector<Rational> product(rows * columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < middle; ++k) {
      for (std::size_t j = 0; j < columns; ++j)
        product[i * columns + j] += a[i * middle + k] * b[k * columns + j];
    }
  }
  const std::size_t most = std::min({rows, middle, columns});
  RC_ASSERT(rank(product, rows) <= most);
  // Random integers of this size are practically never linearly dependent.
  RC_ASSERT(rank(product, rows) + 1 >= most);
  RC_ASSERT(rank(a, rows) <= std::min(rows, middle));
}

RC_GTEST_PROP(CounterMachine, BlindMachinesAreWeightedAutomata, (std::uint64_t seed)) {
  Random random(seed);
  const CounterMachine machine = draw_machine(true, random);
  RC_ASSERT(machine.counter_blind());
  RC_ASSERT(weighted_automaton(machine, 0).states == 2 * machine.states());
  RC_ASSERT(weighted_mistakes(machine, 10, random) == 0U);
}

TEST(CounterMachine, ZeroTestsAreNotBlind) {
  EXPECT_FALSE(clipped_difference().counter_blind());
  EXPECT_THROW(static_cast<void>(weighted_automaton(clipped_difference(), 0)), Error);
  EXPECT_THROW(CounterMachine(2, 1, 17), Error);
  CounterMachine machine(2, 2, 1);
  EXPECT_TRUE(machine.stateless());
  machine.set(0, 1, 1, std::array{Update{true, 1}});
  EXPECT_TRUE(machine.counter_blind());
  EXPECT_FALSE(machine.stateless());
}

TEST(CounterMachine, ClippedDifferenceStopsAtZero) {
  const CounterMachine machine = clipped_difference();
  for (std::size_t i = 0; i < 12; ++i) {
    for (std::size_t j = 0; j < 12; ++j) {
      const auto expected = static_cast<std::int64_t>(i > j ? i - j : 0);
      EXPECT_EQ(machine.run(blocks(std::array{i, j})).counters[0], expected);
    }
  }
}

TEST(CounterMachine, SpaceIsTheFormulas) {
  const std::array up{Update{true, 1}};
  const std::array down{Update{true, -1}};
  CounterMachine difference(2, 1, 1);
  difference.set(0, 0, 0, up);
  difference.set(1, 0, 0, down);
  CounterMachine both(2, 1, 2);
  both.set(0, 0, 0, std::array{Update{true, 1}, Update{}});
  both.set(1, 0, 0, std::array{Update{}, Update{true, 1}});
  const auto clipped = clipped_difference().space(12);
  for (std::size_t n = 0; n <= 12; ++n) {
    EXPECT_EQ(difference.space(12)[n], 2 * n + 1);
    EXPECT_EQ(clipped[n], n + 1);
    EXPECT_EQ(both.space(12)[n], (n + 1) * (n + 2) / 2);
  }
}

RC_GTEST_PROP(CounterMachine, SpaceIsThatOfEveryWord, (std::uint64_t seed)) {
  Random random(seed);
  const CounterMachine machine = draw_machine(random.below(2) == 0, random);
  const std::vector<std::size_t> counted = machine.space(7);
  std::set<std::pair<std::size_t, std::vector<std::int64_t>>> seen;
  for (Word word; word.size() <= 7; next_word(word, 2)) {
    const CounterMachine::Configuration now = machine.run(word);
    seen.emplace(now.state, now.counters);
    if (word == Word(word.size(), 1)) RC_ASSERT(counted[word.size()] == seen.size());
  }
  // Polynomially many: at most |Q| (2n + 1)^k.
  std::size_t bound = machine.states();
  for (std::size_t k = 0; k < machine.counters(); ++k) bound *= 15;
  RC_ASSERT(counted.back() <= bound);
}

TEST(SuffixAttack, WordsHaveTheSameWindows) {
  for (const std::size_t window : {1U, 2U, 3U, 5U}) {
    const auto [in, out] = suffix_attack(window);
    EXPECT_EQ(in.size(), 6 * (window + 10));
    EXPECT_TRUE(same_windows(in, out, window));
    EXPECT_FALSE(same_windows(in, WordView(out).first(out.size() - 1), window));
    EXPECT_NE(in, out);
  }
}

}  // namespace

}  // namespace normscope::nets::rnn
