#include "log_softmax_tangent.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/numeric/rounding.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::convex {
namespace {

/// Logits this far below the largest have probabilities that change no bound.
constexpr double negligible_logit = 70.0;
/// Relative error of a probability by exp, a sum and a division, with a margin; it counts as one of the
/// logit.
constexpr double exp_rounding = 64.0 * unit_roundoff;

/// (A_j − A_from)·u + a_j − a_from.
Bounded logit_from(const LogitRows& logits, std::size_t from, std::size_t j, std::span<const double> point) {
  const std::span<const double> row = logits.rows.row(j);
  const std::span<const double> other = logits.rows.row(from);
  ExactSum sum;
  for (std::size_t i = 0; i < row.size(); ++i) sum.add(two_sum(row[i], -other[i]), point[i]);
  sum.add(two_sum(logits.offsets[j], -logits.offsets[from]), 1.0);
  return sum.result();
}

}  // namespace

LogitRows::LogitRows(MatrixView<const double> from, std::span<const double> offsets_of_rows)
    : rows(from), offsets(offsets_of_rows) {
  squares.reserve(rows.rows());
  for (std::size_t row = 0; row < rows.rows(); ++row)
    squares.push_back(plain_dot(rows.row(row), rows.row(row)));
}

/// Let p be those of logits s_j + e_j, s the logits at u, and h = g/|g|. Then
///   ∂B/∂s_j = p_j ((h − u)·(Σ p_k A_k − A_j) + e_j − Σ p_k e_k),
///   Σ |∂B/∂s_j| <= |h − u| Σ p_j |A_j − Σ p_k A_k| + 2 max |e|.
/// On the way to other logits, which are up to d = `error` + `rounding` from these, each p_j changes by a
/// factor of at most 1 + η = e^2d, so g by at most η spread, and h by at most twice that over |g|.
Bounded SoftmaxTangent::bound(std::span<const double> point, double rounding) const {
  const double length = euclidean_norm(gradient);
  const double distance = error + rounding + exp_rounding;
  const double change = std::expm1(2.0 * distance);
  double square = 0.0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double apart = (length > 0.0 ? gradient[i] / length : 0.0) - point[i];
    square += apart * apart;
  }
  const double turn = change * spread < length ? 2.0 * change * spread / length : 2.0;
  const double slope = (1.0 + 2.0 * change) * spread * (std::sqrt(square) + turn) + 2.0 * distance;
  return {value + length - plain_dot(gradient, point), distance * slope};
}

SoftmaxTangent softmax_tangent(const LogitRows& logits, std::size_t target,
                               std::span<const double> probabilities, std::span<const double> mean,
                               double value, double error) {
  const std::span<const double> row = logits.rows.row(target);
  SoftmaxTangent result{.value = value, .gradient = {row.begin(), row.end()}, .error = error};
  for (std::size_t i = 0; i < mean.size(); ++i) result.gradient[i] -= mean[i];
  const double square = plain_dot(probabilities, logits.squares);
  const double terms = static_cast<double>(probabilities.size() + mean.size() + 16);
  // A mean of lengths is at most the root of the mean of their squares, Σ p |A|² − |Σ p A|².
  result.spread =
      std::sqrt(std::max(0.0, square - plain_dot(mean, mean)) + 8.0 * terms * unit_roundoff * square);
  return result;
}

SoftmaxTangent precise_softmax_tangent(const LogitRows& logits, std::size_t target,
                                       std::span<const double> point, std::span<const double> rough,
                                       double error) {
  // If any row may matter, this underflows to 0.
  const double least = std::exp(-negligible_logit - 2.0 * error);
  std::vector<std::size_t> rows{target};
  std::size_t highest = target;
  for (std::size_t j = 0; j < rough.size(); ++j) {
    if (j != target && rough[j] >= least) rows.push_back(j);
    if (rough[j] > rough[highest]) highest = j;
  }
  // Differences are most accurate from the largest logit, which the first pass finds.
  std::vector<Bounded> differences(rows.size());
  for (int pass = 0; pass < 2; ++pass) {
    const std::size_t from = highest;
    double most = 0.0;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      differences[k] = logit_from(logits, from, rows[k], point);
      if (differences[k].value > most) {
        most = differences[k].value;
        highest = rows[k];
      }
    }
    if (highest == from) break;
  }
  std::vector<double> probabilities(rough.size());
  double total = 0.0;
  double largest_error = 0.0;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    total += probabilities[rows[k]] = std::exp(differences[k].value);
    if (probabilities[rows[k]] > 0.0) largest_error = std::max(largest_error, differences[k].error);
  }
  std::vector<double> mean(point.size());
  for (const std::size_t row : rows) {
    probabilities[row] /= total;
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += probabilities[row] * logits.rows.row(row)[i];
  }
  return softmax_tangent(logits, target, probabilities, mean, differences.front().value - std::log(total),
                         largest_error);
}

}  // namespace normscope::convex
