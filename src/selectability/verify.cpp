#include <normscope/selectability/select.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/proof/separate.hpp>

#include "key_set.hpp"
#include "rows.hpp"

namespace normscope::selectability {
namespace {

constexpr double u = 0x1p-53;

/// Whether the integers prove the answer.
bool verify_exactly(MatrixView<const double> keys, const Selection& selection, std::size_t index) {
  const auto found = std::find_if(selection.exact.begin(), selection.exact.end(),
                                  [index](const ExactVerdict& verdict) { return verdict.key == index; });
  if (found == selection.exact.end() || keys.rows() < 2) return false;
  const Selectability proved = found->separation.answer == proof::Answer::yes  ? Selectability::selectable
                               : found->separation.answer == proof::Answer::no ? Selectability::unselectable
                                                                               : Selectability::undecided;
  const Verdict& verdict = selection.keys[index];
  if (proved != verdict.answer) return false;
  const bool bounded =
      proved == Selectability::selectable
          ? verdict.margin == 0.0 ||
                verdict.margin <= verified_margin(keys, index, verdict.query) * (1.0 + 64.0 * u)
          : verified_residual(keys, index, verdict.weights) <= verdict.residual * (1.0 + 64.0 * u);
  if (!bounded) return false;
  const MatrixView<const double> key(keys.row(index).data(), 1, keys.width());
  const std::size_t self[] = {index};
  return proof::verify(key, keys, found->separation, self);
}

}  // namespace

double verified_margin(MatrixView<const double> keys, std::size_t index, std::span<const double> query) {
  if (query.size() != keys.width()) return -infinity;
  const double length = euclidean_norm(query);
  if (!(length > 0.0) || !std::isfinite(length)) return -infinity;
  double least = infinity;
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    if (row == index) continue;
    const double quick = quick_difference_dot(query, keys.row(index), keys.row(row)).low();
    if (quick >= least) continue;
    const double low = difference_dot(query, keys.row(index), keys.row(row)).low();
    least = std::isnan(low) ? -infinity : std::min(least, low);
  }
  if (least == infinity) return infinity;
  const double margin = least / length;
  return margin - 16.0 * u * std::abs(margin);
}

std::vector<double> verified_distances(MatrixView<const double> keys, std::size_t index,
                                       std::span<const proof::PointWeight> weights) {
  const double total = total_weight(weights, keys.rows(), index);
  if (total == 0.0) return {};
  std::vector<double> distances(keys.width());
  for (std::size_t i = 0; i < distances.size(); ++i) {
    ExactSum sum;
    for (const proof::PointWeight& share : weights) {
      sum.add(two_sum(keys.row(share.id)[i], -keys.row(index)[i]), share.weight);
    }
    const Bounded entry = sum.result();
    const double distance = (std::abs(entry.value) + entry.error) / total * (1.0 + 8.0 * u);
    distances[i] = std::isnan(distance) ? infinity : distance;
  }
  return distances;
}

double verified_residual(MatrixView<const double> keys, std::size_t index,
                         std::span<const proof::PointWeight> weights) {
  const std::vector<double> distances = verified_distances(keys, index, weights);
  if (distances.empty()) return infinity;
  return euclidean_norm(distances) * (1.0 + 16.0 * u);
}

bool verify(MatrixView<const double> keys, const Selection& selection, std::size_t index) {
  const Verdict& verdict = selection.keys[index];
  if (verdict.proof == Proof::exact) return verify_exactly(keys, selection, index);
  switch (verdict.answer) {
    case Selectability::selectable: {
      if (keys.rows() == 1) return true;
      const double margin = verified_margin(keys, index, selection.query(keys, index));
      return margin > 0.0 && verdict.margin > 0.0 && verdict.margin <= margin * (1.0 + 64.0 * u);
    }
    case Selectability::unselectable: {
      const double residual = verified_residual(keys, index, verdict.weights);
      return residual <= verdict.residual * (1.0 + 64.0 * u) &&
             residual <= selection.tolerance * selection.scale &&
             are_none(verified_distances(keys, index, verdict.weights), selection.extents,
                      selection.tolerance);
    }
    case Selectability::undecided: return true;
  }
  return false;
}

bool verify(MatrixView<const double> keys, const Selection& selection, unsigned threads) {
  if (selection.keys.size() != keys.rows()) return false;
  std::atomic<bool> sound{true};
  parallel_for(keys.rows(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end && sound; ++i) {
      if (!verify(keys, selection, i)) sound = false;
    }
  });
  return sound;
}

}  // namespace normscope::selectability
