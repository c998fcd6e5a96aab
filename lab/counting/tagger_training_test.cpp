#include "tagger_training.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

namespace normscope::lab::counting {
namespace {

TaggerSpec small(std::string_view name) {
  return {.tagging = Tagging::near_balance,
          .shape = tagger(name, 6),
          .length = 16,
          .words = 320,
          .epochs = 3,
          .rate = 0.02};
}

void to_end(TaggerTraining& training) {
  while (training.steps() < training.total()) training.step();
}

TEST(TaggerTraining, Learns) {
  TaggerSpec spec = small("two_qrnns");
  spec.epochs = 25;
  TaggerTraining training(spec);
  const double before = training.accuracy(16, 160);
  to_end(training);
  EXPECT_GT(training.accuracy(16, 160), std::max(before, majority(spec.tagging, 16)) + 0.05);
}

TEST(TaggerTraining, ResumesBitwise) {
  for (const std::string_view name : {"lstm", "qrnn_d2"}) {
    const TaggerSpec spec = small(name);
    TaggerTraining whole(spec);
    // In the middle of the second epoch.
    while (whole.steps() < 27) whole.step();
    const std::vector<std::byte> saved = whole.save();
    to_end(whole);
    TaggerTraining later(spec, saved);
    EXPECT_EQ(later.steps(), 27U);
    to_end(later);
    EXPECT_TRUE(std::equal(whole.parameters().begin(), whole.parameters().end(), later.parameters().begin(),
                           later.parameters().end()));
    EXPECT_EQ(whole.loss(), later.loss());
    EXPECT_EQ(whole.accuracy(32, 32), later.accuracy(32, 32));
    EXPECT_THROW(TaggerTraining(spec, std::span(saved).first(100)), Error);
    EXPECT_THROW(TaggerTraining(small("two_qrnns"), saved), Error);
    EXPECT_THROW(static_cast<void>(whole.accuracy(32, 8)), Error);
  }
}

TEST(TaggerTraining, DependsOnItsSeed) {
  TaggerSpec spec = small("qrnn");
  TaggerTraining one(spec);
  TaggerTraining same(spec);
  spec.seed = 2;
  TaggerTraining other(spec);
  for (TaggerTraining* training : {&one, &same, &other}) to_end(*training);
  EXPECT_TRUE(std::equal(one.parameters().begin(), one.parameters().end(), same.parameters().begin()));
  EXPECT_FALSE(std::equal(one.parameters().begin(), one.parameters().end(), other.parameters().begin()));
}

TEST(TaggerTraining, ReportsErrors) {
  TaggerSpec spec = small("lstm");
  spec.words = 100;
  EXPECT_THROW(TaggerTraining{spec}, Error);
  spec = small("lstm");
  spec.rate = 0.0;
  EXPECT_THROW(TaggerTraining{spec}, Error);
  spec = small("lstm");
  spec.length = 0;
  EXPECT_THROW(TaggerTraining{spec}, Error);
}

}  // namespace
}  // namespace normscope::lab::counting
