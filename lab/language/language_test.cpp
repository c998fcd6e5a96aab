#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "corpus.hpp"
#include "frame/experiment.hpp"
#include "key_shares.hpp"
#include "network.hpp"
#include "support/scratch.hpp"

namespace normscope::lab::language {
namespace {

const Shape tiny{.vocabulary = 5, .context = 16, .layers = 2};

std::vector<std::uint8_t> repeating(std::size_t count) {
  std::vector<std::uint8_t> stream;
  for (std::size_t i = 0; i < count; ++i) stream.push_back(static_cast<std::uint8_t>(i * i % 5));
  return stream;
}

TEST(Language, TextIsSplitAndNumbered) {
  const test::Scratch scratch;
  std::string text;
  for (int i = 0; i < 500; ++i) text += "bca\n";
  std::ofstream(scratch / "text") << text;
  const Corpus corpus = text_corpus(scratch / "text");
  EXPECT_EQ(corpus.vocabulary, 4U);
  EXPECT_EQ(corpus.held_out.size(), 100U);
  EXPECT_EQ(corpus.training.size(), 1900U);
  EXPECT_EQ((std::vector<std::uint8_t>(corpus.training.begin(), corpus.training.begin() + 4)),
            (std::vector<std::uint8_t>{2, 3, 1, 0}));
  std::ofstream(scratch / "short") << "abc";
  EXPECT_THROW(static_cast<void>(text_corpus(scratch / "short")), Error);
  Random random(1);
  EXPECT_EQ(pieces(corpus.training, 3, 7, random).size(), 21U);
  EXPECT_THROW(static_cast<void>(pieces(corpus.held_out, 1, 101, random)), Error);
}

TEST(Language, ScalingLeavesNoKeyUnselectable) {
  Random random(2);
  std::vector<double> stream(64 * 8);
  std::vector<double> map(64);
  for (double& entry : stream) entry = random.normal();
  for (double& entry : map) entry = random.normal();
  const NormSpec norm{.width = 8, .eps = 1e-5};
  const KeyShares scaled = key_shares(stream, norm, true, map, 4);
  const KeyShares projected = key_shares(stream, norm, false, map, 4);
  EXPECT_EQ(scaled.undecided + projected.undecided, 0U);
  EXPECT_EQ(scaled.keys, 0.0);
  EXPECT_GT(projected.keys, scaled.keys);
  EXPECT_GT(projected.keys, projected.rows);  // one dimension less
  EXPECT_EQ(projected.rows, scaled.rows);
  EXPECT_GT(scaled.in_head, 0.5);
  EXPECT_GT(normal_share(64, 3, 2, 1), 0.5);
}

TEST(Language, LearnsAndDoesNotReadLaterTokens) {
  for (const bool scales : {true, false}) {
    Shape shape = tiny;
    shape.scales = scales;
    Network network(shape, 1);
    const std::vector<std::uint8_t> stream = repeating(8 * 17);
    const double before = network.loss(stream, 8);
    EXPECT_NEAR(before, std::log(5.0), 0.1);
    for (std::uint64_t step = 0; step < 60; ++step) network.train(stream, 8, {.learning = 0.02}, step);
    EXPECT_LT(network.loss(stream, 8), before - 0.3);

    std::vector<std::uint8_t> sequence = repeating(16);
    const auto first = network.attention_inputs(sequence);
    sequence.back() = 3;
    const auto second = network.attention_inputs(sequence);
    ASSERT_EQ(first.size(), 2U);
    EXPECT_TRUE(std::equal(first[1].begin(), first[1].end() - 8, second[1].begin()));
    EXPECT_NE(first[1].back(), second[1].back());
  }
}

TEST(Language, HeadsOfOtherWidthsAreRefused) {
  Shape shape = tiny;
  shape.width = 12;
  EXPECT_THROW(Network(shape, 1), Error);
  shape.heads = 5;
  EXPECT_THROW(Network(shape, 1), Error);
}

TEST(Language, ResumesBitwise) {
  const std::vector<std::uint8_t> stream = repeating(4 * 17);
  Network whole(tiny, 3);
  Network part(tiny, 3);
  for (std::uint64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(whole.train(stream, 4, {.learning = 0.01}, step),
              part.train(stream, 4, {.learning = 0.01}, step));
  }
  Network resumed(tiny, 4);
  EXPECT_NE(resumed.state(), part.state());
  resumed.restore(part.state());
  for (std::uint64_t step = 3; step < 6; ++step) {
    whole.train(stream, 4, {.learning = 0.01}, step);
    resumed.train(stream, 4, {.learning = 0.01}, step);
  }
  EXPECT_EQ(whole.state(), resumed.state());
}

TEST(Language, AnExperimentThatIsStoppedGoesOnToTheSameNumbers) {
  if (!std::filesystem::exists("/usr/share/dict/american-english")) GTEST_SKIP() << "no word list";
  const Experiment* experiment = find_experiment("brody-language-model");
  ASSERT_NE(experiment, nullptr);
  Json configuration = experiment->plan(Size::quick).configurations.back();
  ASSERT_EQ(configuration["corpus"], "words");
  configuration["steps"] = 6;
  configuration["measure_every"] = 3;
  lab::Run whole(configuration, 1);
  experiment->perform(whole);
  bool stopped = false;
  lab::Run parts(configuration, 1, Progress([&](std::string_view, std::size_t done, std::size_t) {
                   const bool stops = done == 4 && !stopped;
                   stopped = stopped || stops;
                   return !stops;
                 }));
  EXPECT_THROW(experiment->perform(parts), Error);
  experiment->perform(parts);
  EXPECT_EQ(parts.measured(), whole.measured());
}

}  // namespace
}  // namespace normscope::lab::language
