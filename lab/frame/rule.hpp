#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

/// Confidence intervals over seeds, from which every verdict follows.
namespace normscope::lab {

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

/// The t with P(|T| <= t) = confidence, T of Student's distribution.
///
/// Source    [Abramowitz, Stegun 1964, 26.7.3 and 26.7.4]
///
/// Requires  freedom >= 1, 0 < confidence < 1
///
/// Accuracy  1e-9 relative (test: Intervals.StudentsQuantilesAreTheTables)
///
/// Cost      some fifty sums of freedom / 2 terms
[[nodiscard]] double student_quantile(double confidence, std::size_t freedom);

/// Student's interval of the mean of independent, normally distributed numbers.
///
/// Requires  two numbers or more, 0 < confidence < 1
[[nodiscard]] Interval student_interval(std::span<const double> numbers, double confidence);

/// Wilson's interval of a probability, from the share of independent trials that succeeded.
///
/// Source    [Wilson 1927]
///
/// Requires  0 <= share <= 1, trials >= 1, 0 < confidence < 1
///
/// Accuracy  1e-4 (test: Intervals.WilsonsIntervalsArePublishedOnes)
[[nodiscard]] Interval wilson_interval(double share, std::size_t trials, double confidence);

}  // namespace normscope::lab

/// Rules of claims as data, and the verdicts that follow from them.
namespace normscope::lab {

/// What is tested about the numbers that an experiment's runs have for a claim.
enum class Test {
  every_case,   ///< 1 for each case that agrees with the claim, 0 for a counterexample; one refutes it
  mean,         ///< an effect for each seed; Student's interval of its mean
  equivalence,  ///< a difference for each seed, which the claim says is small; Student's interval of its mean
  /// 1 for each training that does what the claim says, else 0; Wilson's interval of the share, in which all
  /// trainings of a seed count as one trial, since they are not independent.
  share,
};

[[nodiscard]] std::string_view to_string(Test test);

/// A rule, fixed before the runs that it judges: what is measured, which effect the claim needs, by which
/// test and with how many seeds.
struct Rule {
  std::string_view says;  ///< the quantity and its least size, in words
  Test test = Test::every_case;
  std::size_t seeds = 1;  ///< with fewer the claim is inconclusive
  double least = 1.0;     ///< the effect that the claim needs; for equivalence the largest difference allowed
  double absent = 0.0;    ///< the effect if the claim is wrong; for mean and share
  std::string_view missing = {};  ///< why these runs cannot refute the claim; empty if they can
  double confidence = 0.95;
};

/// Sizes of an experiment: the paper's and ours at full size.
struct Scale {
  std::string_view paper = "not stated";
  std::string_view ours = {};
  double factor = 1.0;  ///< the paper's training divided by ours; at most 1: not smaller
};

enum class Outcome { reproduced, not_reproduced, inconclusive };

/// The verdict over a claim: the outcome at our size, and whether that is the paper's.
struct Verdict {
  Outcome outcome = Outcome::inconclusive;
  double factor = 1.0;  ///< > 1: not at the paper's size, so many times smaller
  std::optional<Interval> interval = {};
  std::string reason = {};  ///< why it is inconclusive, if it is not the interval
};

/// Reproduced if the interval excludes the absence of the effect and the estimate reaches the least effect;
/// not reproduced if the interval excludes the least effect; else inconclusive. Equivalence is reproduced if
/// the interval lies within ± the largest difference, and not if it lies outside. every_case has no interval:
/// one counterexample refutes the claim.
///
/// If the effects are those of the weakest of `chosen_from` sets, the interval has that much less to be wrong
/// about (Bonferroni): it then holds for all of them at once.
///
/// Requires  `effects` as the rule's test has them, `seeds` of the runs that they are from
[[nodiscard]] Verdict verdict(const Rule& rule, const Scale& scale, std::span<const double> effects,
                              std::size_t seeds, std::size_t chosen_from = 1);

/// What runs like these can see: the least effect whose interval excludes `absent` in four of five
/// repetitions, at the spread of these effects; of equivalence the least bound within which an interval of
/// equal arms lies as often. Empty for every_case, for too few effects, and if no share is large enough.
[[nodiscard]] std::optional<double> least_seen(const Rule& rule, std::span<const double> effects,
                                               std::size_t seeds, std::size_t chosen_from = 1);

/// The verdict if there is a doubt about its rule or its runs: inconclusive, with the rule's outcome and the
/// doubt. Without a doubt, or without an outcome, it stays as it is.
[[nodiscard]] Verdict doubted(Verdict verdict, std::string_view doubt);

/// "reproduced", "not at the paper's size (1/20): reproduced at ours", …
[[nodiscard]] std::string to_string(const Verdict& verdict);
[[nodiscard]] std::string_view to_string(Outcome outcome);

/// The rule of a claim as it is stored, and the SHA-256 of that text in hexadecimal digits.
[[nodiscard]] nlohmann::ordered_json to_json(const Rule& rule);
[[nodiscard]] std::string hash_of(const Rule& rule);

}  // namespace normscope::lab
