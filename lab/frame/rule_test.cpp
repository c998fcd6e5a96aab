#include "rule.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "experiment.hpp"

namespace normscope::lab {
namespace {

TEST(Intervals, StudentsQuantilesAreTheTables) {
  // Degrees of freedom and the two-sided 95 % quantile.
  for (const auto& [freedom, quantile] :
       std::initializer_list<std::pair<std::size_t, double>>{{1, 12.706204736},
                                                             {2, 4.302652730},
                                                             {3, 3.182446305},
                                                             {4, 2.776445105},
                                                             {9, 2.262157163},
                                                             {10, 2.228138852},
                                                             {29, 2.045229642},
                                                             {100, 1.983971519}}) {
    EXPECT_NEAR(student_quantile(0.95, freedom), quantile, 1e-9 * quantile) << freedom;
  }
  EXPECT_NEAR(student_quantile(0.99, 5), 4.032142984, 4e-9);
  const double numbers[] = {1.0, 2.0, 3.0};
  const Interval interval = student_interval(numbers, 0.95);
  EXPECT_NEAR(interval.low, 2.0 - 4.302652730 / std::sqrt(3.0), 1e-8);
  EXPECT_NEAR(interval.high, 2.0 + 4.302652730 / std::sqrt(3.0), 1e-8);
}

TEST(Intervals, WilsonsIntervalsArePublishedOnes) {
  // Newcombe 1998, table I, method 3.
  const auto is = [](std::size_t successes, std::size_t trials, double low, double high) {
    const double share = static_cast<double>(successes) / static_cast<double>(trials);
    const Interval found = wilson_interval(share, trials, 0.95);
    EXPECT_NEAR(found.low, low, 1e-4) << successes << " of " << trials;
    EXPECT_NEAR(found.high, high, 1e-4) << successes << " of " << trials;
  };
  is(81, 263, 0.2553, 0.3662);
  is(15, 148, 0.0624, 0.1605);
  is(0, 20, 0.0, 0.1611);
  is(1, 29, 0.0061, 0.1718);
}

Outcome outcome(const Rule& rule, const std::vector<double>& effects, std::size_t seeds = 10) {
  return verdict(rule, {}, effects, seeds).outcome;
}

TEST(Verdicts, OfMeansFollowFromTheInterval) {
  const Rule rule{"difference", lab::Test::mean, 3, 1.0, 0.0};
  EXPECT_EQ(outcome(rule, {1.9, 2.0, 2.1}), Outcome::reproduced);
  // Every seed is above the least effect, but so few differ so much that none is possible, too.
  EXPECT_EQ(outcome(rule, {1.1, 5.0, 1.2}), Outcome::inconclusive);
  // An effect, but a smaller one.
  EXPECT_EQ(outcome(rule, {0.49, 0.5, 0.51}), Outcome::not_reproduced);
  EXPECT_EQ(outcome(rule, {-2.0, -2.1, -1.9}), Outcome::not_reproduced);
  // The effect is there, and its size may be the least or not.
  EXPECT_EQ(outcome(rule, {0.8, 0.9, 1.1}), Outcome::inconclusive);
  EXPECT_EQ(outcome(rule, {1.9, 2.1}), Outcome::inconclusive);
  EXPECT_EQ(outcome(rule, {1.9, 2.0, 2.1}, 2), Outcome::inconclusive);
  EXPECT_EQ(outcome(rule, {}), Outcome::inconclusive);
  EXPECT_EQ(outcome(rule, {1.9, 2.0, std::nan("")}), Outcome::inconclusive);
}

TEST(Verdicts, OfSharesCasesAndEquivalence) {
  const Rule share{"trainings", lab::Test::share, 5, 0.8, 0.5};
  EXPECT_EQ(outcome(share, {1, 1, 1, 1, 1, 1}), Outcome::reproduced);
  EXPECT_EQ(outcome(share, {1, 1, 1, 0, 1, 1}), Outcome::inconclusive);
  EXPECT_EQ(outcome(share, {0, 0, 0, 0, 0, 1}), Outcome::not_reproduced);

  const Rule cases{"each", lab::Test::every_case};
  EXPECT_EQ(outcome(cases, {1.0}), Outcome::reproduced);
  EXPECT_EQ(outcome(cases, {1.0, 0.0, 1.0}), Outcome::not_reproduced);
  EXPECT_EQ(outcome(cases, {1.0, std::nan("")}), Outcome::not_reproduced);
  EXPECT_EQ(outcome({"each", lab::Test::every_case, 3}, {1.0}, 2), Outcome::inconclusive);

  const Rule alike{"difference", lab::Test::equivalence, 3, 5.0};
  EXPECT_EQ(outcome(alike, {0.1, -0.2, 0.3}), Outcome::reproduced);
  EXPECT_EQ(outcome(alike, {9.0, -8.0, 2.0}), Outcome::inconclusive);
  EXPECT_EQ(outcome(alike, {-9.0, -9.1, -8.9}), Outcome::not_reproduced);
}

TEST(Verdicts, OfSharesCountATrialForASeed) {
  const Rule share{"trainings", lab::Test::share, 5, 0.8, 0.5};
  const std::vector<double> twice{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0};
  const Verdict found = verdict(share, {}, twice, 6);
  const Interval of_seeds = wilson_interval(10.0 / 12.0, 6, 0.95);
  EXPECT_EQ(found.interval->low, of_seeds.low);
  EXPECT_EQ(found.outcome, Outcome::inconclusive);
  EXPECT_EQ(outcome(share, twice, 12), Outcome::reproduced);
}

TEST(Verdicts, OfTheWeakestHoldForAll) {
  const Rule rule{"difference", lab::Test::mean, 3, 1.0, 0.0};
  const std::vector<double> effects{1.6, 2.0, 2.4};
  const Verdict alone = verdict(rule, {}, effects, 3);
  const Verdict of_four = verdict(rule, {}, effects, 3, 4);
  EXPECT_EQ(alone.outcome, Outcome::reproduced);
  EXPECT_EQ(of_four.interval->low, student_interval(effects, 0.9875).low);
  EXPECT_LT(of_four.interval->low, alone.interval->low);
  EXPECT_EQ(verdict(rule, {}, effects, 3, 40).outcome, Outcome::inconclusive);

  const Finding found = weakest("numbers", {{2.0, 3.0}, {1.0, 3.0}, {4.0, 4.0}});
  EXPECT_EQ(found.effects, (std::vector<double>{1.0, 3.0}));
  EXPECT_EQ(found.chosen_from, 3U);
  EXPECT_TRUE(weakest("numbers", {{2.0}, {}}).effects.empty());
}

TEST(Verdicts, SayWhatSuchRunsCanSee) {
  // Ten differences of deviation 1: (2.262157 + 0.883404) / sqrt(10).
  std::vector<double> effects;
  for (int i = 0; i < 10; ++i) effects.push_back((i % 2 == 0 ? 1.0 : -1.0) * std::sqrt(0.9));
  EXPECT_NEAR(*least_seen({"difference", lab::Test::mean, 3, 1.0, 0.5}, effects, 10), 0.5 + 0.994711, 1e-5);
  // Equal arms: (2.262157 + 1.383029) / sqrt(10).
  EXPECT_NEAR(*least_seen({"alike", lab::Test::equivalence, 3, 1.0}, effects, 10), 1.152709, 1e-5);
  EXPECT_GT(*least_seen({"difference", lab::Test::mean, 3, 1.0}, effects, 10, 5),
            *least_seen({"difference", lab::Test::mean, 3, 1.0}, effects, 10));
  // Nine of ten trials are the fewest whose interval is above one half; p^10 + 10 p^9 (1 − p) = 0.8.
  const std::vector<double> ten(10, 1.0);
  const double share = *least_seen({"trainings", lab::Test::share, 3, 0.8, 0.5}, ten, 10);
  EXPECT_NEAR(std::pow(share, 10) + 10.0 * std::pow(share, 9) * (1.0 - share), 0.8, 1e-9);
  // Three of three have an interval from 0.44.
  EXPECT_FALSE(least_seen({"trainings", lab::Test::share, 3, 0.8, 0.5}, std::vector<double>(3, 1.0), 3));
  EXPECT_FALSE(least_seen({"each"}, effects, 10));
}

TEST(Verdicts, AreInconclusiveWithADoubt) {
  const Verdict open = doubted({.outcome = Outcome::reproduced, .factor = 20.0}, "two runs were stopped");
  EXPECT_EQ(to_string(open),
            "not at the paper's size (1/20); at ours inconclusive (reproduced by its rule, but two runs were "
            "stopped)");
  EXPECT_EQ(doubted({.outcome = Outcome::not_reproduced}, "").outcome, Outcome::not_reproduced);
  EXPECT_EQ(doubted({.reason = "2 of 3 seeds"}, "two runs were stopped").reason, "2 of 3 seeds");
}

TEST(Verdicts, NameWhatTheyLack) {
  const std::vector<double> none{0.0, 0.01, -0.01};
  const Rule rule{"difference", lab::Test::mean, 3, 1.0, 0.0};
  EXPECT_EQ(to_string(verdict(rule, {}, none, 3)), "not reproduced");
  EXPECT_EQ(to_string(verdict(rule, {"a", "b", 20.0}, none, 3)),
            "not at the paper's size (1/20); at ours not reproduced");
  EXPECT_EQ(to_string(verdict(rule, {}, none, 2)), "inconclusive (2 of 3 seeds)");
  // What the runs cannot refute they can still support.
  const Rule one_sided{"difference", lab::Test::mean, 3, 1.0, 0.0, "a search"};
  EXPECT_EQ(to_string(verdict(one_sided, {}, none, 3)), "inconclusive (missing: a search)");
  EXPECT_EQ(to_string(verdict(one_sided, {}, std::vector<double>{2.0, 2.1, 2.2}, 3)), "reproduced");
}

TEST(Rules, HaveAHashOfAllTheirParts) {
  const Rule rule{"difference", lab::Test::mean, 3, 1.0, 0.0};
  const std::string hash = hash_of(rule);
  EXPECT_EQ(hash.size(), 64U);
  EXPECT_EQ(hash, hash_of(Rule{"difference", lab::Test::mean, 3, 1.0, 0.0}));
  for (const Rule& other :
       {Rule{"differences", lab::Test::mean, 3, 1.0, 0.0}, Rule{"difference", lab::Test::share, 3, 1.0, 0.0},
        Rule{"difference", lab::Test::mean, 4, 1.0, 0.0}, Rule{"difference", lab::Test::mean, 3, 1.5, 0.0},
        Rule{"difference", lab::Test::mean, 3, 1.0, 0.5},
        Rule{"difference", lab::Test::mean, 3, 1.0, 0.0, "x"},
        Rule{"difference", lab::Test::mean, 3, 1.0, 0.0, {}, 0.9}})
    EXPECT_NE(hash_of(other), hash);
}

}  // namespace
}  // namespace normscope::lab
