#include <normscope/nets/rnn/weighted.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/theorems.hpp>

namespace normscope::nets::rnn {
namespace {

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

}  // namespace
}  // namespace normscope::nets::rnn
