#include <normscope/selectability/verify.hpp>

#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/exact.hpp>
#include <normscope/numeric/sum.hpp>

#include "scaled_keys.hpp"

namespace normscope::selectability {
namespace {

constexpr double u = 0x1p-53;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// directionᵀ(a − b) in plain double precision, and a bound of its error.
Bounded plain_lead(std::span<const double> direction, std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double term = direction[i] * (a[i] - b[i]);
    sum += term;
    size += std::abs(term);
  }
  const double terms = static_cast<double>(a.size()) + 4.0;
  return {sum, 1.01 * terms * u * size + terms * std::numeric_limits<double>::min()};
}

bool are_weights(std::span<const convex::Share> weights, std::size_t rows, std::size_t index) {
  for (const convex::Share& share : weights) {
    if (!(share.weight >= 0.0) || share.id >= rows || share.id == index) return false;
  }
  return true;
}

}  // namespace

double verified_margin(MatrixView<const double> keys, std::size_t index, std::span<const double> query) {
  if (query.size() != keys.width()) return -infinity;
  if (const std::optional<ScaledKeys> scaled = scaled_keys(keys)) {
    return scaled->lower(verified_margin(scaled->view(), index, query));
  }
  const BinaryScale by = BinaryScale::of(query);
  std::vector<double> unit(query.begin(), query.end());
  by.divide(unit);
  const double length = euclidean_norm(unit);
  if (!(length > 0.0) || !std::isfinite(length)) return -infinity;
  double least = infinity;
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    if (row == index) continue;
    const double quick = plain_lead(unit, keys.row(index), keys.row(row)).low();
    if (quick >= least) continue;
    const double low = difference_dot(unit, keys.row(index), keys.row(row)).low();
    least = std::isnan(low) ? -infinity : std::min(least, low);
  }
  const double margin = least / length;
  return margin - 16.0 * u * std::abs(margin);
}

double verified_residual(MatrixView<const double> keys, std::size_t index,
                         std::span<const convex::Share> weights) {
  if (!are_weights(weights, keys.rows(), index)) return infinity;
  if (const std::optional<ScaledKeys> scaled = scaled_keys(keys)) {
    return scaled->upper(verified_residual(scaled->view(), index, weights));
  }
  CompensatedSum total;
  for (const convex::Share& share : weights) total.add(share.weight);
  if (!(total.value() > 0.0) || !std::isfinite(total.value())) return infinity;
  std::vector<double> distance(keys.width());
  for (std::size_t i = 0; i < distance.size(); ++i) {
    ExactSum sum;
    for (const convex::Share& share : weights) {
      sum.add(two_sum(keys.row(share.id)[i], -keys.row(index)[i]), share.weight);
    }
    const Bounded entry = sum.result();
    distance[i] = std::abs(entry.value) + entry.error;
  }
  const double residual = euclidean_norm(distance) / total.value() * (1.0 + 16.0 * u);
  return std::isnan(residual) ? infinity : residual;
}

bool verify(MatrixView<const double> keys, const Selection& selection, std::size_t index) {
  const Verdict& verdict = selection.keys[index];
  switch (verdict.answer) {
    case Answer::selectable: {
      if (keys.rows() == 1) return true;
      const double margin = verified_margin(keys, index, selection.query(keys, index));
      return margin > 0.0 && verdict.margin > 0.0 && verdict.margin <= margin * (1.0 + 64.0 * u);
    }
    case Answer::unselectable: {
      const double residual = verified_residual(keys, index, verdict.weights);
      return residual <= verdict.residual * (1.0 + 64.0 * u) &&
             residual <= selection.tolerance * selection.scale;
    }
    case Answer::undecided: return true;
  }
  return false;
}

bool verify(MatrixView<const double> keys, const Selection& selection, unsigned threads) {
  if (selection.keys.size() != keys.rows()) return false;
  if (const std::optional<ScaledKeys> scaled = scaled_keys(keys)) {
    return verify(scaled->view(), scaled->divided(selection), threads);
  }
  std::atomic<bool> sound{true};
  parallel_for(keys.rows(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end && sound; ++i) {
      if (!verify(keys, selection, i)) sound = false;
    }
  });
  return sound;
}

}  // namespace normscope::selectability
