#include <normscope/nets/rnn/train.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "nets/rnn/textbook.hpp"

namespace normscope::nets::rnn {
namespace {

using test::every_kind;
using test::Long;
using test::LongVector;

/// The mean loss, computed with the textbook cells; parameters are the cell's, then the output's.
Long loss(const Network& network, const LongVector& parameters, const std::vector<Labelled>& words) {
  const std::size_t n = network.cell.width;
  const std::size_t letters_ = letters(network.language);
  const std::size_t outputs = network.outputs();
  const Long* const v = parameters.data() + network.cell.parameters.size();
  Long sum = 0.0L;
  Long terms = 0.0L;
  for (const Labelled& one : words) {
    test::LongState state = test::start(network.cell);
    for (std::size_t at = 0; at <= one.word.size(); ++at) {
      const std::size_t symbol = at == 0 ? letters_ : one.word[at - 1];
      state = test::step(network.cell, parameters, static_cast<std::uint8_t>(symbol), state);
      LongVector out(v + outputs * n, v + outputs * (n + 1));
      for (std::size_t o = 0; o < outputs; ++o) {
        for (std::size_t j = 0; j < n; ++j) out[o] += v[o * n + j] * state.hidden[j];
      }
      if (network.head == Head::membership) {
        if (at < one.word.size()) continue;
        sum += std::log1p(std::exp(one.member ? -out[0] : out[0]));
      } else {
        const std::size_t target = at < one.word.size() ? one.word[at] : letters_;
        Long all = 0.0L;
        for (const Long value : out) all += std::exp(value);
        sum += std::log(all) - out[target];
      }
      terms += 1.0L;
    }
  }
  return sum / terms;
}

Network random_network(CellKind kind, Language language, Head head, Random& random) {
  Network network{.language = language, .head = head};
  network.cell = test::random_cell(kind, letters(language) + 1, 1 + random.below(5), 0.8, random);
  network.cell.linear_output = random.below(2) == 0;
  network.output.resize(network.outputs() * (network.cell.width + 1));
  for (double& value : network.output) value = 2.0 * random.uniform() - 1.0;
  return network;
}

RC_GTEST_PROP(Train, GradientsAreThoseOfDifferences, (std::uint64_t seed)) {
  Random random(seed);
  for (const CellKind kind : every_kind) {
    for (const Head head : {Head::membership, Head::next_symbol}) {
      const Language language = random.below(2) == 0 ? Language::anbn : Language::anbncn;
      const Network network = random_network(kind, language, head, random);
      // More words than lanes, of every length down to 0.
      std::vector<Labelled> words;
      for (std::size_t i = 0; i < 11; ++i) {
        words.push_back(
            {test::random_word(random.below(9), letters(language), random), random.below(2) == 0});
      }
      const Gradient exact = gradient(network, words);
      LongVector parameters(network.cell.parameters.begin(), network.cell.parameters.end());
      parameters.insert(parameters.end(), network.output.begin(), network.output.end());
      RC_ASSERT(std::abs(exact.loss - static_cast<double>(loss(network, parameters, words))) <= 1e-13);
      for (int probe = 0; probe < 12; ++probe) {
        const std::size_t at = random.below(parameters.size());
        const Long middle = parameters[at];
        const auto difference = [&](Long h) {
          parameters[at] = middle + h;
          const Long up = loss(network, parameters, words);
          parameters[at] = middle - h;
          const Long down = loss(network, parameters, words);
          parameters[at] = middle;
          return static_cast<double>((up - down) / (2.0L * h));
        };
        const double slope = difference(1e-6L);
        // If a rectifier changes sign between the two points, the difference is meaningless.
        if (kind == CellKind::elman_relu && std::abs(slope - difference(1e-7L)) > 1e-9) continue;
        RC_ASSERT(std::abs(exact.values[at] - slope) <= 1e-9 + 1e-7 * std::abs(slope));
      }
    }
  }
}

TEST(Train, JudgesWordsAsTheNetworkDoes) {
  Random random(4);
  for (const Head head : {Head::membership, Head::next_symbol}) {
    const Network network = random_network(CellKind::lstm, Language::anbn, head, random);
    std::vector<Labelled> words;
    std::size_t right = 0;
    for (Word word; word.size() <= 5; next_word(word, 2)) {
      words.push_back({word, contains(Language::anbn, word)});
      right += accepts(network, word) == words.back().member ? 1 : 0;
    }
    EXPECT_EQ(gradient(network, words).right, right);
    EXPECT_EQ(score(network, words).right, right);
  }
}

TEST(Train, WordsAreThoseOfTheRegimes) {
  TrainSpec spec = usual(CellKind::lstm, Language::anbncn, Head::next_symbol);
  EXPECT_EQ(training_words(spec).size(), 51U);
  spec.head = Head::membership;
  const std::vector<Labelled> words = training_words(spec);
  EXPECT_EQ(words.size(), 4000U);
  std::size_t members = 0;
  std::size_t near = 0;
  for (const Labelled& one : words) {
    ASSERT_EQ(contains(spec.language, one.word), one.member);
    members += one.member ? 1 : 0;
    std::array<std::size_t, 3> counts{};
    for (const std::uint8_t letter : one.word) ++counts[letter];
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    near += !one.member && *most - *least <= 6 ? 1 : 0;
  }
  EXPECT_EQ(members, 2000U);
  EXPECT_GE(near, 1000U);
}

TEST(Train, LearnsAndRepeatsItself) {
  TrainSpec spec{.width = 4, .longest = 8, .rate = 0.02, .epochs = 150, .seed = 2};
  const Trainer first = train(spec);
  const Trainer second = train(spec);
  EXPECT_EQ(first.network(), second.network());
  EXPECT_LT(first.loss().back(), 0.5 * first.loss().front());
  spec.seed = 3;
  EXPECT_NE(train(spec).network(), first.network());
}

TEST(Train, ResumesBitwise) {
  for (const Head head : {Head::next_symbol, Head::membership}) {
    const TrainSpec spec{.head = head, .width = 3, .longest = 6, .words = 60, .epochs = 12, .seed = 5};
    Trainer whole(spec);
    std::vector<std::byte> saved;
    while (!whole.done()) {
      if (whole.loss().size() == 7) saved = whole.save();
      whole.epoch();
    }
    Trainer later(spec, saved);
    EXPECT_EQ(later.loss().size(), 7U);
    while (!later.done()) later.epoch();
    EXPECT_EQ(later.network(), whole.network());
    EXPECT_TRUE(
        std::equal(later.loss().begin(), later.loss().end(), whole.loss().begin(), whole.loss().end()));
    EXPECT_TRUE(std::equal(later.accuracy().begin(), later.accuracy().end(), whole.accuracy().begin(),
                           whole.accuracy().end()));
    TrainSpec other = spec;
    other.width = 4;
    EXPECT_THROW(Trainer(other, saved), Error);
    other = spec;
    other.epochs = 6;
    EXPECT_THROW(Trainer(other, saved), Error);
    EXPECT_THROW(Trainer(spec, std::span(saved).first(saved.size() - 1)), Error);
  }
}

TEST(Train, GivesTheSameBitsEverywhere) {
  // FNV-1a hashes of the parameters after two small trainings; the explorer's tests expect the same.
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const CellKind kind : {CellKind::lstm, CellKind::gru}) {
    const Trainer trainer = train({.cell = kind, .width = 3, .longest = 5, .epochs = 30, .seed = 7});
    for (const double value : trainer.network().cell.parameters) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (bits >> (8 * byte) & 0xff)) * 0x100000001b3U;
    }
  }
  EXPECT_EQ(hash, 2227443174494443584U);
}

TEST(Train, ReportsErrors) {
  EXPECT_THROW(Trainer({.width = 0}), Error);
  EXPECT_THROW(Trainer({.rate = -1.0}), Error);
  EXPECT_THROW(Trainer({.longest = 0}), Error);
  EXPECT_THROW(Trainer({.batch = 0}), Error);
  EXPECT_THROW(static_cast<void>(head("softmax")), Error);
  const Progress stop([](std::string_view, std::size_t done, std::size_t) { return done < 2; });
  EXPECT_THROW(static_cast<void>(train({.width = 2, .longest = 3}, stop)), Error);
}

}  // namespace
}  // namespace normscope::nets::rnn
