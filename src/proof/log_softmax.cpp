#include <normscope/proof/ball.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

#include "log_softmax_ascent.hpp"

namespace normscope::proof {
namespace {

/// Targets optimized together, as rows of one product.
constexpr std::size_t batch = 32;
/// Number of matrix entries from which a float32 copy is worth its cost.
constexpr std::size_t float_entries = std::size_t{1} << 18U;
/// Size of logits up to which float32 resolves values to the default gap.
constexpr double float_scale = 500.0;
/// Number of rows up to which a batch uses one thread and several batches run concurrently.
constexpr std::size_t few_rows = 4 * softmax_chunk;
constexpr std::size_t most_rounds = 30;
constexpr std::size_t most_newton_steps = 300;
/// How much a bound may depend on the rounding of its probabilities without these being stated.
constexpr double small_doubt = 1e-5;
/// Numbers of probabilities that may be stated, beyond the width.
constexpr std::size_t stated_weights = 64;

/// The logits A u + a, and the squares of the rows' lengths.
struct LogitRows {
  MatrixView<const double> rows{};    ///< A, count × width
  std::span<const double> offsets{};  ///< a
  std::vector<double> squares{};      ///< |A_j|², for `tangent_bound`
};

/// Relative error of a probability by exp, a sum and a division, with a margin; it is treated as an error of
/// the logit.
constexpr double exp_rounding = 64.0 * unit_roundoff;
/// Smaller than any rounding error of a bound, times the number of rows.
constexpr double negligible = 0x1p-100;

/// At least Σ p_j |A_j − mean|: a mean of lengths is at most the root of that of their squares,
/// Σ p_j |A_j|² − |mean|².
double spread(const LogitRows& logits, std::span<const double> probabilities, std::span<const double> mean) {
  const double square = plain_dot(probabilities, logits.squares);
  const double terms = static_cast<double>(probabilities.size() + mean.size() + 16);
  return std::sqrt(std::max(0.0, square - plain_dot(mean, mean)) + 8.0 * terms * unit_roundoff * square);
}

std::vector<double> squared_lengths(MatrixView<const double> rows) {
  std::vector<double> squares;
  squares.reserve(rows.rows());
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    squares.push_back(plain_dot(rows.row(row), rows.row(row)));
  }
  return squares;
}

/// f(v) = log softmax(A v + a)_target is at most B = log p_target + |g| − g·u for |v| <= 1, with p the
/// probabilities at u = `point` and g = A_target − Σ p_j A_j. Returns B for the probabilities (count) of
/// logits within `error` of those at u, `mean` (width) being Σ p_j A_j and `value` log p_target; and by how
/// much B of other logits, within `rounding` of those at u, differs at most.
///
/// Let p be the probabilities of logits s_j + e_j, s the logits at u, and h = g/|g|. Then
///   ∂B/∂s_j = p_j ((h − u)·(mean − A_j) + e_j − Σ p_k e_k),
///   Σ |∂B/∂s_j| <= |h − u| Σ p_j |A_j − mean| + 2 max |e|.
/// On the way to other logits, up to d = `error` + `rounding` + `exp_rounding` away, each p_j changes by a
/// factor of at most 1 + η = e^2d, so g by at most η spread, and h by at most twice that over |g|.
Bounded tangent_bound(const LogitRows& logits, std::size_t target, std::span<const double> point,
                      std::span<const double> probabilities, std::span<const double> mean, double value,
                      double error, double rounding) {
  std::vector<double> gradient(logits.rows.row(target).begin(), logits.rows.row(target).end());
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= mean[i];
  const double length = euclidean_norm(gradient);
  const double distance = error + rounding + exp_rounding;
  const double change = std::expm1(2.0 * distance);
  const double wide = spread(logits, probabilities, mean);
  double square = 0.0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double apart = (length > 0.0 ? gradient[i] / length : 0.0) - point[i];
    square += apart * apart;
  }
  const double turn = change * wide < length ? 2.0 * change * wide / length : 2.0;
  const double slope = (1.0 + 2.0 * change) * wide * (std::sqrt(square) + turn) + 2.0 * distance;
  return {value + length - plain_dot(gradient, point), distance * slope};
}

/// The probabilities that change no bound when the others are 0.
std::vector<PointWeight> sizable_weights(std::span<const double> probabilities) {
  std::vector<PointWeight> weights;
  for (std::size_t j = 0; j < probabilities.size(); ++j) {
    if (probabilities[j] >= negligible) weights.push_back({j, probabilities[j]});
  }
  return weights;
}

/// The whole problem in float64, and the error bound of its values.
struct Exact {
  LogitRows logits;
  SoftmaxProblem<double> problem{};
  double slack = 0.0;
  double rounding = 0.0;  ///< see `LogSoftmaxOptions`

  Exact(LogitRows from, double scale, double rounding_of_logits, unsigned threads)
      : logits(std::move(from)),
        problem{.rows = logits.rows, .offsets = logits.offsets, .scale = scale, .threads = threads},
        // Products of `width` terms and sums of `rows` terms, in units of u each; four products enter a
        // value.
        slack(unit_roundoff *
              (8.0 * static_cast<double>(logits.rows.width() + 16) +
               4.0 * static_cast<double>(logits.rows.rows())) *
              (scale + 1.0)),
        rounding(rounding_of_logits) {}
};

/// The upper bound of f by probabilities, which it states if those that others compute at the point may prove
/// much less.
struct Upper {
  double value = 0.0;
  std::vector<PointWeight> weights{};
};

/// The bound by the probabilities `weights` at `point`, with mean `mean` and logarithm `value` of the
/// target's.
Upper upper_by(const Exact& exact, std::size_t target, std::span<const double> point,
               std::span<const double> weights, std::span<const double> mean, double value) {
  const double error = std::max(1.0, euclidean_norm(point)) * exact.slack;
  const Bounded bound =
      tangent_bound(exact.logits, target, point, weights, mean, value, error, exact.rounding);
  if (!(bound.error <= small_doubt)) {
    std::vector<PointWeight> stated = sizable_weights(weights);
    if (stated.size() <= mean.size() + stated_weights) return {bound.value + error, std::move(stated)};
  }
  return {bound.high() + error};
}

/// Bounds of the maximum for one target.
void raise(LogSoftmaxMaximum& known, double lower, std::span<const double> point) {
  if (!(lower > known.lower)) return;
  known.lower = std::min(lower, 0.0);
  known.point.assign(point.begin(), point.end());
}
void tighten(LogSoftmaxMaximum& known, Upper upper, std::span<const double> point) {
  if (!(upper.value < known.upper)) return;
  known.upper = upper.value;
  known.tangent.assign(point.begin(), point.end());
  known.weights = std::move(upper.weights);
}

/// Updates the bounds with the values at the given points and the bounds by the gradients there, one point
/// per target, computed in float64. The probabilities are left in `weights`.
void prove(const Exact& exact, const std::vector<std::span<const double>>& points,
           const std::vector<std::size_t>& targets, std::vector<double>& weights,
           const std::vector<LogSoftmaxMaximum*>& results) {
  softmax_scores(exact.problem, points, weights);
  const std::size_t count = exact.logits.rows.rows();
  const std::size_t width = exact.logits.rows.width();
  std::vector<double> values(points.size());
  parallel_for(points.size(), 1, exact.problem.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      values[k] = softmax_weights(std::span<double>(weights.data() + k * count, count), targets[k], 1.0);
    }
  });
  std::vector<double> means;
  softmax_means(exact.problem, std::span<const double>(weights), points.size(), means);
  std::vector<Upper> uppers(points.size());
  parallel_for(points.size(), 1, exact.problem.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      uppers[k] =
          upper_by(exact, targets[k], points[k], std::span<const double>(weights).subspan(k * count, count),
                   std::span<const double>(means).subspan(k * width, width), values[k]);
    }
  });
  for (std::size_t k = 0; k < points.size(); ++k) {
    tighten(*results[k], std::move(uppers[k]), points[k]);
    if (euclidean_norm(points[k]) > 1.0 - 8.0 * unit_roundoff) continue;
    raise(*results[k], values[k] - exact.slack, points[k]);
  }
}

/// Newton's method over the rows with non-negligible probability at the maximum; rows that become
/// non-negligible are added.
void finish(const Exact& exact, std::size_t target, std::span<const double> first_weights,
            const LogSoftmaxOptions& options, LogSoftmaxMaximum& result) {
  const std::size_t count = exact.logits.rows.rows();
  const std::size_t width = exact.logits.rows.width();
  // Rows of total probability below this change value and gradient by at most an eighth of the gap.
  const double least = 0.125 * options.gap / (static_cast<double>(count) * (1.0 + 2.0 * exact.problem.scale));
  std::vector<bool> taken(count);
  std::vector<std::size_t> ids{target};
  taken[target] = true;
  const auto join = [&](std::span<const double> weights) {
    const std::size_t before = ids.size();
    for (std::size_t j = 0; j < count; ++j) {
      if (taken[j] || !(weights[j] >= least)) continue;
      taken[j] = true;
      ids.push_back(j);
    }
    return ids.size() > before;
  };
  static_cast<void>(join(first_weights));
  double work = options.newton_work;
  std::vector<double> weights;
  for (std::size_t round = 0; round < most_rounds; ++round) {
    const double step_cost = newton_step_cost(ids.size(), width);
    work -= 4.0 * static_cast<double>(count * width);
    const double steps = std::min(work / step_cost, static_cast<double>(most_newton_steps));
    if (!(steps >= 1.0)) return;
    std::vector<double> rows;
    std::vector<double> offsets;
    for (const std::size_t id : ids) {
      rows.insert(rows.end(), exact.logits.rows.row(id).begin(), exact.logits.rows.row(id).end());
      offsets.push_back(exact.logits.offsets[id]);
    }
    const SoftmaxPeak peak = log_softmax_peak({rows.data(), ids.size(), width}, offsets, 0,
                                              0.25 * options.gap, static_cast<std::size_t>(steps));
    work -= step_cost * static_cast<double>(peak.steps);
    result.iterations += peak.steps;
    prove(exact, {peak.point}, {target}, weights, {&result});
    if (result.upper - result.lower <= options.gap || !join(weights)) return;
  }
}

template <typename T>
void solve(const Exact& exact, const SoftmaxProblem<T>& problem, std::span<const std::size_t> targets,
           const LogSoftmaxOptions& options, std::span<LogSoftmaxMaximum> results) {
  std::vector<Ascent<T>> ascents(targets.size());
  for (std::size_t k = 0; k < targets.size(); ++k) {
    const std::span<const double> row = exact.logits.rows.row(targets[k]);
    ascents[k].target = targets[k];
    ascents[k].next.assign(row.begin(), row.end());
    const double length = euclidean_norm(row);
    for (double& value : ascents[k].next) value = length > 0.0 ? value / length : 0.0;
    project_into_ball(ascents[k].next);
  }
  // Aims at half the gap, because float64 decides the rest.
  ascend(problem, exact.logits.rows, ascents, 0.5 * options.gap, options.iterations);
  std::vector<double> weights;
  std::vector<std::span<const double>> points;
  std::vector<std::size_t> owners;
  std::vector<LogSoftmaxMaximum*> known;
  for (std::size_t k = 0; k < ascents.size(); ++k) {
    results[k].iterations = ascents[k].evaluations;
    for (const std::vector<double>* point : {&ascents[k].lower_point, &ascents[k].upper_point}) {
      points.emplace_back(*point);
      owners.push_back(targets[k]);
      known.push_back(&results[k]);
    }
  }
  prove(exact, points, owners, weights, known);
  const std::size_t count = exact.logits.rows.rows();
  parallel_for(targets.size(), 1, problem.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      if (results[k].upper - results[k].lower <= options.gap) continue;
      finish(exact, targets[k], std::span<const double>(weights).subspan(2 * k * count, count), options,
             results[k]);
    }
  });
}

double scale_of(MatrixView<const double> rows, std::span<const double> offsets,
                std::span<const std::size_t> targets) {
  if (rows.rows() == 0 || rows.width() == 0 || offsets.size() != rows.rows() ||
      std::any_of(targets.begin(), targets.end(),
                  [&](std::size_t target) { return target >= rows.rows(); })) {
    throw Error(ErrorCode::Shape,
                fmt::format("log softmax: {} x {} rows with {} offsets, expected an offset a row and targets "
                            "among them",
                            rows.rows(), rows.width(), offsets.size()));
  }
  double scale = 0.0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    scale = std::max(scale, euclidean_norm(rows.row(row)) + std::abs(offsets[row]));
  }
  if (!(scale <= 0x1p200)) {
    throw Error(ErrorCode::Argument,
                fmt::format("log softmax: logits up to {}, expected at most 2^200", scale));
  }
  return scale;
}

}  // namespace

std::vector<LogSoftmaxMaximum> largest_log_softmax(MatrixView<const double> rows,
                                                   std::span<const double> offsets,
                                                   std::span<const std::size_t> targets,
                                                   const LogSoftmaxOptions& options) {
  const double scale = scale_of(rows, offsets, targets);
  std::vector<LogSoftmaxMaximum> results(targets.size());
  // With few rows, one thread per batch; with many, all threads for each batch.
  const bool small = rows.rows() <= few_rows;
  const Exact exact({rows, offsets, squared_lengths(rows)}, scale, options.rounding,
                    small ? 1 : options.threads);
  const bool single = scale <= float_scale && rows.rows() * rows.width() >= float_entries;
  const BinaryScale by = BinaryScale::of(scale);
  std::vector<float> single_rows;
  std::vector<float> single_offsets;
  for (std::size_t row = 0; single && row < rows.rows(); ++row) {
    for (const double value : rows.row(row)) single_rows.push_back(static_cast<float>(by.divide(value)));
    single_offsets.push_back(static_cast<float>(by.divide(offsets[row])));
  }
  const SoftmaxProblem<float> rough{.rows = {single_rows.data(), rows.rows(), rows.width(), rows.width()},
                                    .offsets = single_offsets,
                                    .unit = by.multiply(1.0),
                                    .scale = scale,
                                    .threads = exact.problem.threads};
  const std::size_t group = batch * (small ? thread_count(options.threads) : 1);
  for (std::size_t done = 0; done < targets.size(); done += group) {
    options.progress("probability", done, targets.size());
    const std::size_t batches = (std::min(group, targets.size() - done) + batch - 1) / batch;
    parallel_for(batches, 1, options.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        const std::size_t first = done + k * batch;
        const std::size_t count = std::min(batch, targets.size() - first);
        const std::span<LogSoftmaxMaximum> some = std::span(results).subspan(first, count);
        if (single) {
          solve(exact, rough, targets.subspan(first, count), options, some);
        } else {
          solve(exact, exact.problem, targets.subspan(first, count), options, some);
        }
      }
    });
  }
  options.progress("probability", targets.size(), targets.size());
  return results;
}

std::vector<LogSoftmaxMaximum> prove_log_softmax(MatrixView<const double> rows,
                                                 std::span<const double> offsets,
                                                 std::span<const std::size_t> targets,
                                                 const std::vector<std::vector<double>>& points,
                                                 double rounding, unsigned threads) {
  const Exact exact({rows, offsets, squared_lengths(rows)}, scale_of(rows, offsets, targets), rounding,
                    threads);
  const bool fit = std::all_of(points.begin(), points.end(), [&](const std::vector<double>& point) {
    return point.size() == rows.width() && std::isfinite(euclidean_norm(point));
  });
  if (points.size() != 2 * targets.size() || !fit) {
    throw Error(ErrorCode::Shape, fmt::format("log softmax: {} points for {} targets, expected two of {} "
                                              "numbers for each",
                                              points.size(), targets.size(), rows.width()));
  }
  std::vector<LogSoftmaxMaximum> results(targets.size());
  std::vector<double> weights;
  for (std::size_t done = 0; done < targets.size(); done += batch) {
    std::vector<std::span<const double>> some;
    std::vector<std::size_t> owners;
    std::vector<LogSoftmaxMaximum*> known;
    for (std::size_t k = 2 * done; k < std::min(points.size(), 2 * (done + batch)); ++k) {
      some.emplace_back(points[k]);
      owners.push_back(targets[k / 2]);
      known.push_back(&results[k / 2]);
    }
    prove(exact, some, owners, weights, known);
  }
  return results;
}

Bounded log_softmax_at(MatrixView<const double> rows, std::span<const double> offsets, std::size_t target,
                       std::span<const double> point) {
  const std::vector<std::size_t> targets{target};
  const Exact exact({rows, offsets, {}}, scale_of(rows, offsets, targets), 0.0, 1);
  std::vector<double> weights;
  softmax_scores(exact.problem, {point}, weights);
  return {softmax_weights(std::span<double>(weights), target, 1.0),
          exact.slack * std::max(1.0, euclidean_norm(point))};
}

}  // namespace normscope::proof
