#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/core/exact.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/proof/exact_separation.hpp>

#include "nearest_hulls.hpp"
#include "separation_bounds.hpp"

namespace normscope::proof {
namespace {

/// Sum of the weights, or NaN if they are invalid.
double total_weight(const std::vector<PointWeight>& weights, std::size_t rows) {
  CompensatedSum total;
  for (const PointWeight& share : weights) {
    if (!(share.weight >= 0.0) || share.id >= rows) return std::numeric_limits<double>::quiet_NaN();
    total.add(share.weight);
  }
  return total.value();
}

/// 1 − 1 / Σ weight: the relative excess of the sum over 1.
Bounded excess(const std::vector<PointWeight>& weights) {
  ExactSum sum;
  sum.add(-1.0, 1.0);
  CompensatedSum total;
  for (const PointWeight& share : weights) {
    sum.add(share.weight, 1.0);
    total.add(share.weight);
  }
  const Bounded off = sum.result();
  const double value = off.value / total.value();
  return {value, off.error / total.value() * (1.0 + 0x1p-40) + 0x1p-50 * std::abs(value)};
}

/// Adds sign · Σ weight (rows − origin) of a column to one sum, and without the sign to another.
void add_column(MatrixView<const double> rows, const std::vector<PointWeight>& weights, std::size_t column,
                double origin, double sign, ExactSum& both, ExactSum& own) {
  for (const PointWeight& share : weights) {
    const DoubleDouble difference = two_sum(rows.row(share.id)[column], -origin);
    both.add(difference, sign * share.weight);
    own.add(difference, share.weight);
  }
}

/// Σλa − Σμb in a column, for weights divided by their sums, and the size of the terms that cancel.
struct ColumnResidual {
  double size = 0.0;    ///< an upper bound
  double extent = 0.0;  ///< Σ weight |row − the heaviest row|
};

/// Empty if the weights are invalid.
std::vector<ColumnResidual> column_residuals(MatrixView<const double> a, MatrixView<const double> b,
                                             const std::vector<PointWeight>& weights_a,
                                             const std::vector<PointWeight>& weights_b) {
  for (const double total : {total_weight(weights_a, a.rows()), total_weight(weights_b, b.rows())}) {
    if (!(total > 0.0) || !std::isfinite(total)) return {};
  }
  const auto heaviest =
      std::max_element(weights_a.begin(), weights_a.end(),
                       [](const PointWeight& x, const PointWeight& y) { return x.weight < y.weight; });
  const Bounded excess_a = excess(weights_a);
  const Bounded excess_b = excess(weights_b);
  std::vector<ColumnResidual> result(a.width());
  for (std::size_t i = 0; i < a.width(); ++i) {
    ColumnResidual& column = result[i];
    // Relative to a row, so that common parts cancel before rounding.
    const double origin = a.row(heaviest->id)[i];
    ExactSum both;
    ExactSum of_a;
    ExactSum of_b;
    add_column(a, weights_a, i, origin, 1.0, both, of_a);
    add_column(b, weights_b, i, origin, -1.0, both, of_b);
    for (const PointWeight& share : weights_a) {
      column.extent += share.weight * std::abs(a.row(share.id)[i] - origin);
    }
    for (const PointWeight& share : weights_b) {
      column.extent += share.weight * std::abs(b.row(share.id)[i] - origin);
    }
    // If the sums of the weights are not 1, the error is proportional to the terms.
    const double size_a = std::abs(of_a.result().value) + of_a.result().error;
    const double size_b = std::abs(of_b.result().value) + of_b.result().error;
    const Bounded sum = both.result();
    const double correction = excess_b.value * of_b.result().value - excess_a.value * of_a.result().value;
    const double error = sum.error + (excess_a.error + 0x1p-50 * std::abs(excess_a.value)) * size_a +
                         (excess_b.error + 0x1p-50 * std::abs(excess_b.value)) * size_b;
    column.size = (std::abs(sum.value + correction) + error) * (1.0 + 0x1p-50);
  }
  return result;
}

/// Products of rows with a direction, in twice the precision where that decides.
class Scores {
 public:
  explicit Scores(const std::vector<double>& normal) : normal_(normal), origin_(normal.size(), 0.0) {}

  /// Products are those of differences from this row.
  void set_origin(std::span<const double> row) { origin_.assign(row.begin(), row.end()); }
  /// normalᵀ(row − origin), in plain arithmetic.
  [[nodiscard]] Bounded rough(std::span<const double> row) const {
    double total = 0.0;
    double size = 0.0;
    for (std::size_t i = 0; i < normal_.size(); ++i) {
      const double term = normal_[i] * (row[i] - origin_[i]);
      total += term;
      size += std::abs(term);
    }
    const double terms = static_cast<double>(normal_.size());
    return {total, (terms + 8.0) * 0x1p-52 * size + terms * std::numeric_limits<double>::min()};
  }
  /// The same, in twice the precision.
  [[nodiscard]] Bounded close(std::span<const double> row) const {
    return difference_dot(normal_, row, origin_);
  }
  /// The smallest value of `sign` times the product over a set.
  [[nodiscard]] Bounded least(MatrixView<const double> set, double sign, std::size_t* at = nullptr) {
    std::vector<Bounded> scores;
    scores.reserve(set.rows());
    double reach = infinity;
    for (std::size_t row = 0; row < set.rows(); ++row) {
      const Bounded score = rough(set.row(row));
      largest_error_ = std::max(largest_error_, score.error);
      scores.push_back({sign * score.value, score.error});
      reach = std::min(reach, scores.back().high());
    }
    Bounded result{infinity, 0.0};
    for (std::size_t row = 0; row < set.rows(); ++row) {
      // Used as it is even if something overflowed, which then proves nothing.
      if (scores[row].low() > reach) continue;
      const Bounded score = close(set.row(row));
      if (!std::isfinite(score.value)) return {-infinity, infinity};
      if (sign * score.value - score.error < result.low()) {
        result = {sign * score.value, score.error};
        if (at != nullptr) *at = row;
      }
    }
    return result;
  }
  /// normalᵀorigin − offset.
  [[nodiscard]] Bounded origin_above(double offset) const {
    ExactSum sum;
    for (std::size_t i = 0; i < normal_.size(); ++i) sum.add(DoubleDouble{origin_[i]}, normal_[i]);
    sum.add(DoubleDouble{-offset}, 1.0);
    return sum.result();
  }
  /// Error bound of sums of double-doubles, in any order.
  [[nodiscard]] double twofold_error() const { return 512.0 * 0x1p-53 * largest_error_; }

 private:
  const std::vector<double>& normal_;
  std::vector<double> origin_;
  double largest_error_ = 0.0;
};

bool is_direction(const std::vector<double>& normal, std::size_t width) {
  const double length = euclidean_norm(normal);
  return normal.size() == width && length > 0.0 && std::isfinite(length);
}

}  // namespace

SeparatedBy separated_by(MatrixView<const double> a, MatrixView<const double> b,
                         const std::vector<double>& normal) {
  if (!is_direction(normal, a.width())) return {};
  Scores scores(normal);
  scores.set_origin(a.row(0));
  std::size_t lowest = 0;
  static_cast<void>(scores.least(a, 1.0, &lowest));
  scores.set_origin(a.row(lowest));
  const Bounded of_a = scores.least(a, 1.0);
  const Bounded of_b = scores.least(b, -1.0);
  SeparatedBy result;
  const double gap = of_a.low() + of_b.low() - scores.twofold_error();
  // The sums and the length round by 12u.
  const double margin = (gap - 16.0 * 0x1p-53 * std::abs(gap)) / euclidean_norm(normal);
  if (std::isnan(margin)) return result;
  result.margin = std::abs(margin) < 0x1p-1020 ? std::nextafter(margin, -infinity) : margin;
  // Halfway between the sets, or the nearest double if doubles are dense enough.
  const Bounded origin = scores.origin_above(0.0);
  result.offset = origin.value + 0.5 * (of_a.value - of_b.value);
  for (const double offset :
       {result.offset, std::nextafter(result.offset, -infinity), std::nextafter(result.offset, infinity)}) {
    const Bounded above = scores.origin_above(offset);
    if (above.low() + of_a.low() > 0.0 && above.high() - of_b.low() < 0.0) {
      result.offset = offset;
      break;
    }
  }
  return result;
}

bool is_between(MatrixView<const double> a, MatrixView<const double> b, const std::vector<double>& normal,
                double offset) {
  Scores scores(normal);
  scores.set_origin(a.row(0));
  const Bounded above = scores.origin_above(offset);
  const Bounded of_a = scores.least(a, 1.0);
  const Bounded of_b = scores.least(b, -1.0);
  // If no double lies between the sets, one next to them is used.
  const double rounding = 8.0 * 0x1p-53 * std::abs(scores.origin_above(0.0).value);
  return above.high() + of_a.high() >= -rounding && above.low() - of_b.high() <= rounding;
}

double verified_margin(MatrixView<const double> a, MatrixView<const double> b,
                       const std::vector<double>& normal) {
  return separated_by(a, b, normal).margin;
}

Residual residual_of(MatrixView<const double> a, MatrixView<const double> b,
                     const std::vector<PointWeight>& weights_a, const std::vector<PointWeight>& weights_b) {
  const std::vector<ColumnResidual> columns = column_residuals(a, b, weights_a, weights_b);
  if (columns.empty()) return {};
  std::vector<double> sizes;
  Residual result{.length = 0.0, .relative = 0.0};
  for (const ColumnResidual& column : columns) {
    sizes.push_back(column.size);
    if (column.size > 0.0) result.relative = std::max(result.relative, column.size / column.extent);
  }
  result.length = euclidean_norm(sizes) * (1.0 + 0x1p-48);
  return result;
}

double verified_residual(MatrixView<const double> a, MatrixView<const double> b,
                         const std::vector<PointWeight>& weights_a,
                         const std::vector<PointWeight>& weights_b) {
  return residual_of(a, b, weights_a, weights_b).length;
}

bool verify(MatrixView<const double> a, MatrixView<const double> b, const Separation& separation) {
  if (separation.exact && separation.exact->answer != Answer::undecided) {
    return separation.answer == separation.exact->answer && verify(a, b, *separation.exact);
  }
  switch (separation.answer) {
    case Answer::yes: {
      const double margin = verified_margin(a, b, separation.normal);
      return margin > 0.0 && separation.margin <= margin &&
             is_between(a, b, separation.normal, separation.offset);
    }
    case Answer::no: {
      const Residual residual = residual_of(a, b, separation.a, separation.b);
      return residual.length <= separation.residual &&
             residual.length <= separation.tolerance * HullFrame(a, b).scale() &&
             residual.relative <= separation.tolerance;
    }
    case Answer::undecided: return true;
  }
  return false;
}

}  // namespace normscope::proof
