#include <normscope/nets/rnn/network.hpp>

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/saturated.hpp>

#include "nets/rnn/textbook.hpp"

namespace normscope::nets::rnn {
namespace {

/// The saturated threshold counter, with a start symbol that leaves its state almost unchanged.
Network counter() {
  const Acceptor acceptor = lstm_threshold_counter();
  Network network{.language = Language::anbn, .head = Head::membership};
  network.cell = Cell::zeros(CellKind::lstm, 3, acceptor.cell.width);
  Cell small = acceptor.cell;
  for (std::size_t gate = 0; gate < 4; ++gate) {
    for (std::size_t unit = 0; unit < small.width; ++unit) {
      for (std::size_t letter = 0; letter < 2; ++letter) {
        network.cell.weight(gate)[unit * 3 + letter] = 40.0 * small.weight(gate)[unit * 2 + letter];
      }
      // The start symbol closes every input gate.
      if (gate == 0) network.cell.weight(gate)[unit * 3 + 2] = -4000.0;
      network.cell.bias(gate)[unit] = 40.0 * small.bias(gate)[unit];
      for (std::size_t from = 0; from < small.width; ++from) {
        network.cell.recurrent(gate)[unit * small.width + from] =
            40.0 * small.recurrent(gate)[unit * small.width + from];
      }
    }
  }
  network.output = acceptor.decoder.weight;
  network.output.push_back(acceptor.decoder.bias);
  return network;
}

TEST(Network, ACounterIsExact) {
  const Network network = counter();
  for (Word word; word.size() <= 10; next_word(word, 2)) {
    ASSERT_EQ(accepts(network, word), contains(Language::anbn, word)) << text(word);
  }
  const Range seen = range(network, 60);
  EXPECT_EQ(seen.exact_to(1), 60U);
  EXPECT_TRUE(seen.member[0]);
  EXPECT_FALSE(seen.one_less[0]);
  const Score all = score(network, near_members(Language::anbn, 200, 50, 1));
  EXPECT_EQ(all.accuracy(), 1.0);
  EXPECT_EQ(all.balanced(), 1.0);
}

TEST(Network, ExactToStopsBeforeTheFirstMistake) {
  const std::vector<bool> none(20, false);
  Range seen{std::vector<bool>(20, true), none, none, none};
  seen.member[3] = false;
  EXPECT_EQ(seen.exact_to(), 19U);
  EXPECT_EQ(seen.exact_to(1), 2U);
  seen.another[12] = true;
  EXPECT_EQ(seen.exact_to(), 11U);
  seen.another[5] = true;
  EXPECT_EQ(seen.exact_to(), 4U);
}

TEST(Network, RangeIsWhatIsAccepted) {
  Random random(3);
  for (const Head head : {Head::membership, Head::next_symbol}) {
    for (int run = 0; run < 10; ++run) {
      Network network{.language = Language::anbncn, .head = head};
      network.cell = test::random_cell(CellKind::elman_tanh, 4, 3, 2.0, random);
      network.output.resize(network.outputs() * 4);
      for (double& value : network.output) value = 6.0 * random.uniform() - 3.0;
      const Range seen = range(network, 6);
      for (std::size_t n = 0; n <= 6; ++n) {
        bool another = false;
        for (std::size_t count = 0; count <= n + Range::beyond; ++count) {
          const bool accepted = accepts(network, blocks(std::array{n, n, count}));
          if (count == n) {
            EXPECT_EQ(seen.member[n], accepted);
          }
          if (count + 1 == n) {
            EXPECT_EQ(seen.one_less[n], accepted);
          }
          if (count == n + 1) {
            EXPECT_EQ(seen.one_more[n], accepted);
          }
          another = another || (accepted && count != n);
          for (std::size_t middle = n - std::min(n, Range::around); middle <= n + Range::around; ++middle) {
            another = another || (middle != n && accepts(network, blocks(std::array{n, middle, count})));
          }
        }
        EXPECT_EQ(seen.another[n], another);
      }
    }
  }
}

TEST(Network, ProbabilitiesAreOfTheNextSymbol) {
  // Without weights, all symbols are always equally likely.
  Network network{.language = Language::anbncn, .cell = Cell::zeros(CellKind::gru, 4, 2)};
  network.output.assign(4 * 3, 0.0);
  for (const double p : probabilities(network, word("abc", 3))) EXPECT_EQ(p, 0.25);
  EXPECT_TRUE(accepts(network, word("cab", 3)));
  // b has almost no probability.
  network.output[4 * 2 + 1] = -5.0;
  EXPECT_FALSE(accepts(network, word("cab", 3)));
  EXPECT_TRUE(accepts(network, word("caa", 3)));
  // The end symbol has almost no probability.
  network.output[4 * 2 + 3] = -5.0;
  EXPECT_FALSE(accepts(network, word("caa", 3)));
  EXPECT_EQ(trace(network, word("caa", 3)).steps, 4U);
}

TEST(Network, ReportsErrors) {
  Network network = counter();
  EXPECT_THROW(static_cast<void>(accepts(network, Word{2})), Error);
  EXPECT_THROW(static_cast<void>(score(network, std::vector<Labelled>{{Word{}, true}})), Error);
  network.output.pop_back();
  EXPECT_THROW(validate(network), Error);
  network = counter();
  network.language = Language::anbncn;
  EXPECT_THROW(validate(network), Error);
}

}  // namespace
}  // namespace normscope::nets::rnn
