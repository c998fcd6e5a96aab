#include <normscope/automata/counter_machine.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "automata/textbook.hpp"

namespace normscope::automata {
namespace {

constexpr std::array<Update, 6> operations{Update{true, 1},  Update{true, 0},  Update{true, -1},
                                           Update{false, 0}, Update{false, 1}, Update{false, -1}};

CounterMachine random_machine(Random& random, bool blind) {
  const std::size_t states = 1 + random.below(4);
  const std::size_t counters = 1 + random.below(2);
  CounterMachine machine(2, states, counters);
  for (std::size_t letter = 0; letter < 2; ++letter) {
    for (std::size_t state = 0; state < states; ++state) {
      for (std::size_t zeros = 0; zeros < std::size_t{1} << counters; ++zeros) {
        std::vector<Update> updates;
        for (std::size_t k = 0; k < counters; ++k) updates.push_back(operations[random.below(6)]);
        const std::size_t next = random.below(states);
        if (blind) {
          machine.set(letter, state, next, updates);
        } else {
          machine.set(letter, state, zeros, next, updates);
        }
      }
    }
  }
  return machine;
}

RC_GTEST_PROP(CounterMachine, BlindMachinesAreWeightedAutomata, (std::uint64_t seed)) {
  Random random(seed);
  const CounterMachine machine = random_machine(random, true);
  RC_ASSERT(machine.counter_blind());
  for (std::size_t k = 0; k < machine.counters(); ++k) {
    const WeightedAutomaton automaton = weighted_automaton(machine, k);
    RC_ASSERT(automaton.states == 2 * machine.states());
    for (int i = 0; i < 10; ++i) {
      const Word word = test::random_word(random.below(31), 2, random);
      RC_ASSERT(automaton.value(word) == Rational(machine.run(word).counters[k]));
    }
  }
}

TEST(CounterMachine, OneThatLooksIsNotBlind) {
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
  const CounterMachine machine = random_machine(random, random.below(2) == 0);
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
    std::map<Word, int> balance;
    for (std::size_t at = 0; at + window <= in.size(); ++at) {
      const auto begin = static_cast<std::ptrdiff_t>(at);
      const auto end = begin + static_cast<std::ptrdiff_t>(window);
      ++balance[Word(in.begin() + begin, in.begin() + end)];
      --balance[Word(out.begin() + begin, out.begin() + end)];
    }
    for (const auto& [letters_seen, difference] : balance) EXPECT_EQ(difference, 0) << text(letters_seen);
    EXPECT_NE(in, out);
  }
}

}  // namespace
}  // namespace normscope::automata
