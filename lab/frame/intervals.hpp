#pragma once

#include <cstddef>
#include <span>

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

/// Wilson's interval of a probability, from successes in independent trials.
///
/// Source    [Wilson 1927]
///
/// Requires  successes <= trials, trials >= 1, 0 < confidence < 1
///
/// Accuracy  1e-4 (test: Intervals.WilsonsIntervalsArePublishedOnes)
[[nodiscard]] Interval wilson_interval(std::size_t successes, std::size_t trials, double confidence);

}  // namespace normscope::lab
