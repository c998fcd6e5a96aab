#include <normscope/selectability/verify.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include <normscope/convex/exact_separation.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/exact.hpp>
#include <normscope/numeric/rounding.hpp>
#include <normscope/numeric/sum.hpp>

#include "certificates.hpp"
#include "extents.hpp"
#include "scaled_columns.hpp"
#include "scaled_keys.hpp"

namespace normscope::selectability {
namespace {

constexpr double u = 0x1p-53;

/// Ratio of column extents, as a power of two, up to which products use the columns unscaled.
constexpr int largest_spread = 200;

/// The columns of the keys with nonzero query entries, if there are others or sizes differ widely; each is
/// scaled by its own power of two, which leaves scores unchanged.
struct QueriedColumns {
  std::vector<double> query{};
  std::vector<double> values{};
  std::size_t rows;
  /// With scaled columns, the margin for the original query and keys is larger by the factor length ·
  /// 2^exponent.
  bool wide = false;
  double length = 1.0;
  int exponent = 0;

  QueriedColumns(MatrixView<const double> keys, std::span<const double> all) : rows(keys.rows()) {
    std::vector<std::size_t> columns;
    std::vector<int> exponents;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!std::isfinite(all[i])) return;
      if (all[i] == 0.0) continue;
      double size = 0.0;
      for (std::size_t row = 0; row < rows; ++row) size = std::max(size, std::abs(keys.row(row)[i]));
      columns.push_back(i);
      exponents.push_back(size > 0.0 ? std::ilogb(size) : 0);
    }
    const auto [least, most] = std::minmax_element(exponents.begin(), exponents.end());
    wide = !exponents.empty() && *most - *least > largest_spread;
    if (!wide && columns.size() == all.size()) return;
    for (const std::size_t i : columns) query.push_back(all[i]);
    if (wide) {
      rescale(exponents);
    } else {
      std::fill(exponents.begin(), exponents.end(), 0);
    }
    values.reserve(rows * columns.size());
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < columns.size(); ++i) {
        values.push_back(std::scalbn(keys.row(row)[columns[i]], -exponents[i]));
      }
    }
  }
  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), rows, query.size()}; }

 private:
  void rescale(const std::vector<int>& exponents) {
    const BinaryScale by = BinaryScale::of(query);
    std::vector<double> unit = query;
    by.divide(unit);
    exponent = std::numeric_limits<int>::min();
    for (std::size_t i = 0; i < query.size(); ++i) {
      exponent = std::max(exponent, std::ilogb(query[i]) + exponents[i]);
    }
    // In one step, so that an entry underflows only where its product is negligible beside the largest one.
    for (std::size_t i = 0; i < query.size(); ++i) query[i] = std::scalbn(query[i], exponents[i] - exponent);
    exponent -= by.exponent();
    length = euclidean_norm(query) / euclidean_norm(unit) * (1.0 - 18.0 * u);
  }
};

/// Whether the integers prove the answer.
bool verify_exactly(MatrixView<const double> keys, const Selection& selection, std::size_t index) {
  const auto found = std::find_if(selection.exact.begin(), selection.exact.end(),
                                  [index](const ExactVerdict& verdict) { return verdict.key == index; });
  if (found == selection.exact.end() || keys.rows() < 2) return false;
  const Selectability proved = found->separation.answer == convex::Answer::yes  ? Selectability::selectable
                               : found->separation.answer == convex::Answer::no ? Selectability::unselectable
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
  return convex::verify(key, keys, found->separation, self);
}

}  // namespace

double verified_margin(MatrixView<const double> keys, std::size_t index, std::span<const double> query) {
  if (query.size() != keys.width()) return -infinity;
  if (const QueriedColumns seen(keys, query); !seen.query.empty()) {
    const double margin = verified_margin(seen.view(), index, seen.query);
    // A margin of zero or less proves nothing.
    if (!seen.wide || !(margin > 0.0) || !std::isfinite(margin)) return margin;
    const double product = margin * seen.length;
    return product > std::numeric_limits<double>::min()
               ? std::nextafter(std::scalbn(product, seen.exponent), 0.0)
               : 0.0;
  }
  if (const std::optional<ScaledKeys> scaled = scaled_keys(keys)) {
    const double margin = verified_margin(scaled->view(), index, query);
    return margin == infinity ? margin : scaled->lower(margin);
  }
  const BinaryScale by = BinaryScale::of(query);
  std::vector<double> unit(query.begin(), query.end());
  by.divide(unit);
  const double length = euclidean_norm(unit);
  if (!(length > 0.0) || !std::isfinite(length)) return -infinity;
  // Entries that underflow are off by less than 2⁻¹⁰⁷⁴, and coordinates differ by at most twice the largest.
  double lost = 0.0;
  for (std::size_t i = 0; i < unit.size(); ++i) {
    if (by.multiply(unit[i]) != query[i]) lost += std::numeric_limits<double>::denorm_min();
  }
  if (lost > 0.0) lost *= 2.0 * largest_size(keys);
  double least = infinity;
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    if (row == index) continue;
    const double quick = quick_difference_dot(unit, keys.row(index), keys.row(row)).low() - lost;
    if (quick >= least) continue;
    const double low = difference_dot(unit, keys.row(index), keys.row(row)).low() - lost;
    least = std::isnan(low) ? -infinity : std::min(least, low);
  }
  if (least == infinity) return infinity;
  const double margin = least / length;
  return margin - 16.0 * u * std::abs(margin);
}

std::vector<double> verified_distances(MatrixView<const double> keys, std::size_t index,
                                       std::span<const convex::PointWeight> weights) {
  const double total = total_weight(weights, keys.rows(), index);
  if (total == 0.0) return {};
  std::vector<double> distances(keys.width());
  for (std::size_t i = 0; i < distances.size(); ++i) {
    // Each column is measured in its own units, since sizes may differ widely.
    double largest = std::abs(keys.row(index)[i]);
    for (const convex::PointWeight& share : weights)
      largest = std::max(largest, std::abs(keys.row(share.id)[i]));
    const BinaryScale unit = BinaryScale::of(largest);
    const BinaryScale by = unit.is_safe() ? BinaryScale() : unit;
    double lost = 0.0;
    const auto divided = [&](double value) {
      const double quotient = by.divide(value);
      if (by.multiply(quotient) != value) lost = std::numeric_limits<double>::min();
      return quotient;
    };
    ExactSum sum;
    const double own = divided(keys.row(index)[i]);
    for (const convex::PointWeight& share : weights) {
      sum.add(two_sum(divided(keys.row(share.id)[i]), -own), share.weight);
    }
    const Bounded entry = sum.result();
    const double off = std::abs(entry.value) + entry.error;
    double distance = (off / total + lost) * (1.0 + 8.0 * u);
    if (!by.is_one() && distance > 0.0) distance = std::nextafter(by.multiply(distance), infinity);
    distances[i] = std::isnan(distance) ? infinity : distance;
  }
  return distances;
}

double verified_residual(MatrixView<const double> keys, std::size_t index,
                         std::span<const convex::PointWeight> weights) {
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
  // Verdicts found in scaled columns are stated for the original keys.
  const std::optional<ScaledKeys> scaled = scaled_columns(keys) ? std::nullopt : scaled_keys(keys);
  const Selection divided = scaled ? scaled->divided(selection) : Selection{};
  std::atomic<bool> sound{true};
  parallel_for(keys.rows(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end && sound; ++i) {
      const bool as_given = !scaled || selection.keys[i].proof == Proof::exact;
      if (!(as_given ? verify(keys, selection, i) : verify(scaled->view(), divided, i))) sound = false;
    }
  });
  return sound;
}

}  // namespace normscope::selectability
