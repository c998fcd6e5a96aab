#include <normscope/automata/saturated.hpp>

#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "automata/textbook.hpp"

namespace normscope::automata {
namespace {

/// Words of up to `longest` letters that the acceptor gets wrong.
std::vector<std::string> mistakes(const Acceptor& acceptor, Language language, std::size_t longest) {
  std::vector<std::string> wrong;
  for (Word word; word.size() <= longest; next_word(word, letters(language))) {
    if (accepts(acceptor, word) != contains(language, word)) wrong.push_back(text(word));
  }
  return wrong;
}

const std::vector<std::string> none;

TEST(Counters, LstmIsExactOnEveryWord) {
  EXPECT_EQ(mistakes(lstm_counter(Language::anbn), Language::anbn, 14), none);
  EXPECT_EQ(mistakes(lstm_counter(Language::anbncn), Language::anbncn, 10), none);
}

TEST(Counters, LstmWithLinearOutputIsExactAsWell) {
  Acceptor acceptor = lstm_counter(Language::anbncn);
  acceptor.cell.linear_output = true;
  EXPECT_EQ(mistakes(acceptor, Language::anbncn, 8), none);
}

TEST(Counters, RectifierIsExactOnEveryWord) {
  EXPECT_EQ(mistakes(relu_counter(Language::anbn), Language::anbn, 14), none);
  EXPECT_EQ(mistakes(relu_counter(Language::anbncn), Language::anbncn, 10), none);
}

TEST(Counters, OneThresholdIsEnoughForAnLstm) {
  EXPECT_EQ(mistakes(lstm_threshold_counter(), Language::anbn, 14), none);
}

TEST(Counters, AreExactOnLongWords) {
  for (const Language language : {Language::anbn, Language::anbncn}) {
    std::vector<Acceptor> acceptors{lstm_counter(language), relu_counter(language)};
    if (language == Language::anbn) acceptors.push_back(lstm_threshold_counter());
    for (const Acceptor& acceptor : acceptors) {
      const std::size_t n = 10000;
      EXPECT_TRUE(accepts(acceptor, member(language, n)));
      std::array<std::size_t, 3> counts{n, n, n};
      for (std::size_t letter = 0; letter < letters(language); ++letter) {
        for (const std::size_t other : {n - 1, n + 1}) {
          counts[letter] = other;
          EXPECT_FALSE(accepts(acceptor, blocks(std::span(counts).first(letters(language)))));
        }
        counts[letter] = n;
      }
    }
  }
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
    // How large is large enough depends on how near to 0 a map came.
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

TEST(Saturated, HasNoLimitAtZero) {
  const Cell cell = Cell::zeros(CellKind::elman_tanh, 1, 1);
  State state = initial(cell);
  EXPECT_THROW(advance_saturated(cell, 0, state), Error);
  EXPECT_THROW(static_cast<void>(accepts(lstm_counter(Language::anbn), Word{2})), Error);
}

TEST(Saturated, TheoremTwoConvergesToACounterThatStopsAtZero) {
  // max(0, i − j) on a^i b^j, the worst over i, j < 25: the fact of the unit `above`, alone.
  const auto worst = [](double factor) {
    Cell cell = Cell::zeros(CellKind::lstm, 2, 1);
    cell.weight(0)[1] = -2.0;
    cell.recurrent(0)[0] = 10.0;
    cell.bias(0)[0] = 1.0;
    cell.weight(3)[0] = 1.0;
    cell.weight(3)[1] = -1.0;
    cell = scaled(cell, factor);
    // f = o = 1, as the theorem has it, not as its limit.
    cell.bias(1)[0] = 40.0;
    cell.bias(2)[0] = 40.0;
    double most = 0.0;
    for (std::size_t i = 0; i < 25; ++i) {
      for (std::size_t j = 0; j < 25; ++j) {
        State state = initial(cell);
        for (const std::uint8_t letter : blocks(std::array{i, j})) advance(cell, letter, state);
        const double exact = i > j ? static_cast<double>(i - j) : 0.0;
        most = std::max(most, std::abs(state.cell[0] - exact));
      }
    }
    return most;
  };
  EXPECT_NEAR(worst(1.0), 5.93, 0.02);
  EXPECT_NEAR(worst(3.0), 0.166, 0.002);
  EXPECT_NEAR(worst(5.0), 0.045, 0.001);
  EXPECT_LT(worst(10.0), 1.1e-3);
  EXPECT_LT(worst(20.0), 1e-7);
}

}  // namespace
}  // namespace normscope::automata
