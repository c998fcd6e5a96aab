#include <normscope/proof/separate.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/rounding.hpp>

#include "nearest_hulls.hpp"

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
  /// That product in twice the precision.
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

/// The margin that is proved for a normal.
struct SeparatedBy {
  double margin = -std::numeric_limits<double>::infinity();  ///< a lower bound in exact arithmetic
  double offset = 0.0;                                       ///< between the sets, if a double lies there
};

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

/// Whether the offset lies between the sets' products with the normal, up to its own rounding.
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

/// |Σλa − Σμb| for weights divided by their sums: upper bounds in exact arithmetic, infinite for invalid
/// weights.
struct Residual {
  double length = std::numeric_limits<double>::infinity();
  /// The largest over the columns of the distance divided by the weighted sum of the rows' distances from the
  /// heaviest row of A.
  double relative = std::numeric_limits<double>::infinity();
};

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

/// Fraction of the largest margin by which the proved margin may fall short before the computation is
/// refined.
constexpr double close_margin = 1e-10;
/// Fraction of the scale by which it may fall short, because a normal of doubles cannot do better.
constexpr double close_scale = 0x1p-51;
/// Work limit for refinement in twice the precision: active rows squared times the width.
constexpr double close_operations = 3e6;
constexpr double close_entries = 1e7;

void validate(MatrixView<const double> a, MatrixView<const double> b) {
  if (a.rows() == 0 || b.rows() == 0 || a.width() == 0 || a.width() != b.width()) {
    throw Error(ErrorCode::Shape,
                fmt::format("separate: the sets are {} x {} and {} x {}, expected rows of one "
                            "width in both",
                            a.rows(), a.width(), b.rows(), b.width()));
  }
  expect_accepted("separate", {a, b});
}

/// Weights of the rows of one set.
struct Weights {
  std::vector<PointWeight> a{};
  std::vector<PointWeight> b{};
  Residual residual{};
};

/// The best result so far.
class Search {
 public:
  Search(MatrixView<const double> a, MatrixView<const double> b, double tolerance, unsigned threads,
         const Progress& progress)
      : a_(a), b_(b), frame_(a, b), tolerance_(tolerance), threads_(threads), progress_(progress) {}

  [[nodiscard]] Separation solve() {
    search();
    Separation result;
    result.scale = frame_.scale();
    result.tolerance = tolerance_;
    result.normal = normal_;
    result.margin = by_.margin;
    result.offset = by_.offset;
    if (by_.margin > 0.0) {
      result.answer = Answer::yes;
    } else if (meets()) {
      result.answer = Answer::no;
    }
    Weights& weights = result.answer == Answer::no ? meeting_ : nearest_;
    result.a = std::move(weights.a);
    result.b = std::move(weights.b);
    result.residual = weights.residual.length;
    return result;
  }

 private:
  /// Whether the hulls meet up to the tolerance and no margin was proved.
  [[nodiscard]] bool meets() const {
    return !(by_.margin > 0.0) && !apart_ && meeting_.residual.relative <= tolerance_ &&
           meeting_.residual.length <= tolerance_ * frame_.scale();
  }

  void search() {
    const CenteredHulls hulls(a_, b_, frame_, threads_);
    NearestHulls found = nearest_hulls(hulls, {}, progress_);
    take(found);
    if (by_.margin > 0.0) {
      const double short_by = nearest_.residual.length - by_.margin;
      const double enough = std::max(close_margin * by_.margin, close_scale * frame_.scale());
      if (short_by <= enough) return;
    }
    const double carriers = static_cast<double>(found.shares.size());
    const double width = static_cast<double>(a_.width());
    if (carriers * carriers * width > close_operations) return;
    if (static_cast<double>(hulls.rows()) * width > close_entries) return;
    found = nearest_hulls_closely(hulls, found.shares, progress_);
    apart_ = !found.is_zero;
    take(found);
  }

  void take(const NearestHulls& found) {
    take_weights(found.shares);
    // Weights that are zero up to rounding, of which only a few rows may be significant.
    std::vector<PointWeight> heavy = found.shares;
    heavy.erase(std::remove_if(heavy.begin(), heavy.end(),
                               [](const PointWeight& share) { return share.weight < 0x1p-70; }),
                heavy.end());
    if (heavy.size() < found.shares.size()) take_weights(heavy);
    take_normal(found.difference);
  }

  void take_weights(const std::vector<PointWeight>& shares) {
    Weights weights;
    for (const PointWeight& share : shares) {
      if (share.id < a_.rows()) {
        weights.a.push_back(share);
      } else {
        weights.b.push_back({share.id - a_.rows(), share.weight});
      }
    }
    for (std::vector<PointWeight>* side : {&weights.a, &weights.b}) {
      std::sort(side->begin(), side->end(),
                [](const PointWeight& x, const PointWeight& y) { return x.id < y.id; });
    }
    weights.residual = residual_of(a_, b_, weights.a, weights.b);
    if (meeting_.a.empty() || weights.residual.relative < meeting_.residual.relative) meeting_ = weights;
    if (nearest_.a.empty() || weights.residual.length < nearest_.residual.length) {
      nearest_ = std::move(weights);
    }
  }

  void take_normal(const CenteredHulls::Exact& direction) {
    std::vector<double> normal;
    for (const DoubleDouble& value : direction) normal.push_back(value.value());
    const double length = euclidean_norm(normal);
    if (!(length > 0.0) || !std::isfinite(length)) return;
    for (double& value : normal) value /= length;
    const SeparatedBy by = separated_by(a_, b_, normal);
    if (!normal_.empty() && !(by.margin > by_.margin)) return;
    by_ = by;
    normal_ = std::move(normal);
  }

  MatrixView<const double> a_;
  MatrixView<const double> b_;
  HullFrame frame_;
  double tolerance_;
  unsigned threads_;
  const Progress& progress_;
  Weights meeting_{};  ///< for the smallest distance relative to the column extents
  Weights nearest_{};  ///< for the smallest distance
  std::vector<double> normal_{};
  SeparatedBy by_{};
  bool apart_ = false;  ///< apart in twice the precision, to the accuracy of that
};

}  // namespace

std::string_view to_string(Answer answer) {
  switch (answer) {
    case Answer::yes: return "yes";
    case Answer::no: return "no";
    case Answer::undecided: return "undecided";
  }
  return "";
}

Separation separate(MatrixView<const double> a, MatrixView<const double> b, double tolerance,
                    unsigned threads, const Progress& progress) {
  validate(a, b);
  return Search(a, b, tolerance, threads, progress).solve();
}

double verified_margin(MatrixView<const double> a, MatrixView<const double> b,
                       const std::vector<double>& normal) {
  return separated_by(a, b, normal).margin;
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
