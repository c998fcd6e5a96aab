#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/view.hpp>

namespace normscope::proof {

/// Radius that keeps a point inside the ball despite the rounding of a division.
inline constexpr double inside_ball = 1.0 - 0x1p-49;

/// Projects onto the ball, radially.
inline void project_into_ball(std::vector<double>& point) {
  const double length = euclidean_norm(point);
  if (length <= inside_ball) return;
  for (double& value : point) value *= inside_ball / length;
}

/// The problem in precision T, with its numbers divided by `unit` so that they fit.
template <typename T>
struct SoftmaxProblem {
  Factor<T> rows{};  ///< tokens × width
  std::span<const T> offsets{};
  double unit = 1.0;
  double scale = 0.0;  ///< largest length of a row plus size of its offset, before division
  unsigned threads = 1;

  [[nodiscard]] std::size_t count() const { return rows.rows; }
  [[nodiscard]] std::size_t width() const { return rows.columns; }
};

/// Rows multiplied at a time by one thread.
inline constexpr std::size_t softmax_chunk = 4096;

/// scores(k, ·) = rows · points_k + offsets, points of `width` numbers each.
template <typename T>
void softmax_scores(const SoftmaxProblem<T>& problem, const std::vector<std::span<const double>>& points,
                    std::vector<T>& scores) {
  const std::size_t count = problem.count();
  const std::size_t width = problem.width();
  std::vector<T> left;
  left.reserve(points.size() * width);
  for (const std::span<const double> point : points) {
    for (const double value : point) left.push_back(static_cast<T>(value));
  }
  scores.resize(points.size() * count);
  const std::size_t chunks = (count + softmax_chunk - 1) / softmax_chunk;
  parallel_for(chunks, 1, problem.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t chunk = begin; chunk < end; ++chunk) {
      const std::size_t first = chunk * softmax_chunk;
      const std::size_t size = std::min(softmax_chunk, count - first);
      const Factor<T> some(problem.rows.data + first * problem.rows.row_step, size, width,
                           problem.rows.row_step);
      const MatrixView<T> to(scores.data() + first, points.size(), size, count);
      multiply(Factor<T>(left.data(), points.size(), width, width), some.transposed(), to);
      for (std::size_t k = 0; k < points.size(); ++k) {
        for (std::size_t j = 0; j < size; ++j) to.row(k)[j] += problem.offsets[first + j];
      }
    }
  });
}

/// Converts scores to probabilities and returns the logarithm of the target's.
template <typename T>
double softmax_weights(std::span<T> scores, std::size_t target, double unit) {
  const T highest = *std::max_element(scores.begin(), scores.end());
  const double own = unit * static_cast<double>(scores[target] - highest);
  const T factor = static_cast<T>(unit);
  double total = 0.0;
  for (T& score : scores) {
    score = std::exp((score - highest) * factor);
    total += static_cast<double>(score);
  }
  const T inverse = static_cast<T>(1.0 / total);
  for (T& score : scores) score *= inverse;
  return own - std::log(total);
}

/// means(k, ·) = Σ_j weights(k, j) rows_j; the order of summation does not depend on the number of threads.
template <typename T>
void softmax_means(const SoftmaxProblem<T>& problem, std::span<const T> weights, std::size_t points,
                   std::vector<double>& means) {
  const std::size_t count = problem.count();
  const std::size_t width = problem.width();
  const std::size_t chunks = (count + softmax_chunk - 1) / softmax_chunk;
  std::vector<T> parts(chunks * points * width);
  parallel_for(chunks, 1, problem.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t chunk = begin; chunk < end; ++chunk) {
      const std::size_t first = chunk * softmax_chunk;
      const std::size_t size = std::min(softmax_chunk, count - first);
      multiply(
          Factor<T>(weights.data() + first, points, size, count),
          Factor<T>(problem.rows.data + first * problem.rows.row_step, size, width, problem.rows.row_step),
          MatrixView<T>(parts.data() + chunk * points * width, points, width));
    }
  });
  means.assign(points * width, 0.0);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    for (std::size_t i = 0; i < means.size(); ++i) {
      means[i] += problem.unit * static_cast<double>(parts[chunk * means.size() + i]);
    }
  }
}

/// The ascent for one target: accelerated projected gradient steps with a line search, restarted when the
/// momentum points downhill.
///
/// Source    [Beck, Teboulle 2009]; [O'Donoghue, Candès 2015] for the restart
template <typename T>
struct Ascent {
  std::size_t target = 0;
  std::vector<double> point{};  ///< the last accepted point
  std::vector<T> scores{};
  double value = -std::numeric_limits<double>::infinity();
  std::vector<double> ahead{};  ///< the extrapolated point, possibly outside the ball
  std::vector<double> gradient{};
  double value_ahead = 0.0;
  std::vector<double> next{};  ///< the end of the step
  double curvature = 0.0;
  double momentum = 1.0;

  /// The attained value and its upper bound, up to rounding, and the points where they hold.
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  std::vector<double> lower_point{};
  std::vector<double> upper_point{};
  std::size_t evaluations = 0;

  void see(double found, const std::vector<double>& at) {
    if (found <= lower) return;
    lower = found;
    lower_point = at;
  }

  /// Uses value and gradient at `ahead`: updates the bound and computes the next step.
  void look_ahead(double found, std::span<const double> mean, std::span<const double> row) {
    value_ahead = found;
    gradient.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) gradient[i] = row[i] - mean[i];
    const double length = euclidean_norm(gradient);
    const double bound = found + length - plain_dot(gradient, ahead);
    if (bound < upper) {
      upper = bound;
      upper_point = ahead;
    }
    if (curvature == 0.0) curvature = length;
    step();
  }

  void step() {
    next.resize(ahead.size());
    for (std::size_t i = 0; i < ahead.size(); ++i) {
      next[i] = ahead[i] + (curvature > 0.0 ? gradient[i] / curvature : 0.0);
    }
    project_into_ball(next);
  }

  /// Whether the value at `next` is as high as the step promised; if not, the step is shortened.
  [[nodiscard]] bool accept(double found, double noise) {
    double along = 0.0;
    double square = 0.0;
    for (std::size_t i = 0; i < next.size(); ++i) {
      const double by = next[i] - ahead[i];
      along += gradient[i] * by;
      square += by * by;
    }
    if (found >= value_ahead + along - 0.5 * curvature * square - noise) return true;
    curvature *= 2.0;
    step();
    return false;
  }

  /// Accepts `next` and extrapolates by the momentum; the scores there are linear in those of two points.
  void advance(double found, std::span<const T> found_scores, std::span<T> scores_ahead) {
    double back = 0.0;
    for (std::size_t i = 0; i < next.size(); ++i) back += (ahead[i] - next[i]) * (next[i] - point[i]);
    double by = 0.0;
    if (found < value || back > 0.0) {
      momentum = 1.0;
    } else {
      const double grown = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * momentum * momentum));
      by = (momentum - 1.0) / grown;
      momentum = grown;
    }
    const bool down = found < value;
    const std::vector<double>& base = down ? point : next;
    ahead.resize(base.size());
    for (std::size_t i = 0; i < base.size(); ++i) ahead[i] = base[i] + by * (base[i] - point[i]);
    const T factor = static_cast<T>(by);
    for (std::size_t j = 0; j < scores_ahead.size(); ++j) {
      const T here = down ? scores[j] : found_scores[j];
      scores_ahead[j] = here + factor * (here - scores[j]);
    }
    if (!down) {
      value = found;
      point = next;
      std::copy(found_scores.begin(), found_scores.end(), scores.begin());
    }
    curvature *= 0.9;
  }
};

/// Runs all ascents together, as rows of one product, until their bounds are `gap` apart up to rounding or
/// each has used `evaluations` evaluations.
template <typename T>
void ascend(const SoftmaxProblem<T>& problem, MatrixView<const double> rows, std::vector<Ascent<T>>& ascents,
            double gap, std::size_t evaluations) {
  const std::size_t count = problem.count();
  const double noise = 16.0 * static_cast<double>(std::numeric_limits<T>::epsilon()) * (problem.scale + 1.0);
  std::vector<T> scores;
  std::vector<T> weights;
  std::vector<double> means;
  std::vector<Ascent<T>*> open;
  open.reserve(ascents.size());
  for (Ascent<T>& ascent : ascents) open.push_back(&ascent);
  while (!open.empty()) {
    std::vector<std::span<const double>> points;
    points.reserve(open.size());
    for (const Ascent<T>* ascent : open) points.emplace_back(ascent->next);
    softmax_scores(problem, points, scores);
    std::vector<double> values(open.size());
    weights = scores;
    parallel_for(open.size(), 1, problem.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        values[k] =
            softmax_weights(std::span<T>(weights.data() + k * count, count), open[k]->target, problem.unit);
      }
    });
    // Ascents that continue need the gradient at their extrapolated points.
    std::vector<Ascent<T>*> accepted;
    for (std::size_t k = 0; k < open.size(); ++k) {
      Ascent<T>& ascent = *open[k];
      ++ascent.evaluations;
      ascent.see(values[k], ascent.next);
      const bool first = ascent.scores.empty();
      if (first) ascent.scores.resize(count);
      if (!first && !ascent.accept(values[k], noise)) continue;
      const std::size_t place = accepted.size();
      const std::span<const T> found(scores.data() + k * count, count);
      std::vector<T>& kept = ascent.scores;
      if (first) {
        std::copy(found.begin(), found.end(), kept.begin());
        ascent.point = ascent.next;
        ascent.ahead = ascent.next;
        ascent.value = values[k];
      }
      ascent.advance(values[k], found, std::span<T>(weights.data() + place * count, count));
      accepted.push_back(&ascent);
    }
    std::vector<double> ahead(accepted.size());
    parallel_for(accepted.size(), 1, problem.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        ahead[k] = softmax_weights(std::span<T>(weights.data() + k * count, count), accepted[k]->target,
                                   problem.unit);
      }
    });
    softmax_means(problem, std::span<const T>(weights), accepted.size(), means);
    for (std::size_t k = 0; k < accepted.size(); ++k) {
      accepted[k]->look_ahead(ahead[k],
                              std::span<const double>(means).subspan(k * rows.width(), rows.width()),
                              rows.row(accepted[k]->target));
    }
    open.erase(std::remove_if(open.begin(), open.end(),
                              [&](const Ascent<T>* ascent) {
                                return ascent->upper - ascent->lower <= gap ||
                                       ascent->evaluations >= evaluations;
                              }),
               open.end());
  }
}

/// The maximum of log softmax over few rows, up to rounding.
struct SoftmaxPeak {
  std::vector<double> point{};  ///< |u| <= 1
  std::size_t steps = 0;
};

/// Cost of a step for this many rows, in operations.
[[nodiscard]] double newton_step_cost(std::size_t rows, std::size_t width);

/// max over |u| <= 1 of log softmax(rows u + offsets)_target by Newton steps in the ball. The logits are
/// first scaled down so far that the first step is good, and then increased by a constant factor; each
/// maximum is the start for the next.
///
/// Source    [Boyd, Vandenberghe 2004, section 11.3] for the path; [Moré, Sorensen 1983] for a step
///
/// Shapes    rows (any >= 1, width), offsets (rows)
///
/// Cost      a few steps for each factor of 4 in the logits' size
[[nodiscard]] SoftmaxPeak log_softmax_peak(MatrixView<const double> rows, std::span<const double> offsets,
                                           std::size_t target, double gap, std::size_t most_steps);

}  // namespace normscope::proof
