#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include <normscope/certificates/verify.hpp>
#include <normscope/core/error.hpp>
#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/double_double.hpp>
#include <normscope/numeric/exact.hpp>
#include <normscope/numeric/rounding.hpp>
#include <normscope/numeric/sum.hpp>

#include "document.hpp"
#include "exact.hpp"

namespace normscope::certificates {
namespace {

constexpr std::size_t no_row = std::numeric_limits<std::size_t>::max();

/// How far a stated sum, ratio or distance that has no certificate may be from the one computed here.
constexpr double measured = 1e-9;

class SeparateCheck {
 public:
  SeparateCheck(const Result& result, const ClassRows& classes)
      : root_(result.fields().root()),
        classes_(classes.rows),
        numbers_(classes.numbers),
        has_labels_(!result.argument("labels").empty()) {
    const Field rows = root_["rows"];
    bool fits = rows.size() == classes_.size();
    for (std::size_t c = 0; fits && c < classes_.size(); ++c) {
      fits = rows[c].count() == classes_[c].rows() && root_["width"].count() == classes_[c].width();
    }
    if (!fits) {
      throw Error(ErrorCode::Shape,
                  fmt::format("{}: is of other numbers of rows than the inputs have", result.source()));
    }
    scale_differences();
  }

  Verification run() {
    found_.check(root_.has("classes") == has_labels_, "classes", "are stated without labels, or missing");
    check_ratios();
    if (classes_.size() == 2) {
      check_separation();
    } else if (has_labels_) {
      found_.not_checkable.push_back({"classes", "nothing proves the order of more than two"});
    }
    list_unproved(
        found_, root_,
        {"schema", "version", "inputs", "width", "rows", "classes", "ssr", "lssr", "direction", "separable",
         "margin", "normal", "offset", "a", "b", "residual", "scale", "tolerance", "exact"});
    return std::move(found_);
  }

 private:
  /// Ratios of sums of squares are computed relative to the first row and divided by a power of two:
  /// otherwise the squares would lose the variation of data far from zero.
  void scale_differences() {
    double largest = 0.0;
    for (std::size_t i = 0; i < classes_[0].width(); ++i) {
      double low = classes_[0].row(0)[i];
      double high = low;
      for (const MatrixView<const double> rows : classes_) {
        for (std::size_t row = 0; row < rows.rows(); ++row) {
          low = std::min(low, rows.row(row)[i]);
          high = std::max(high, rows.row(row)[i]);
        }
      }
      largest = std::max(largest, std::min(high - low, std::numeric_limits<double>::max()));
    }
    differences_ = BinaryScale::of(largest);
  }
  [[nodiscard]] double from_first(std::size_t c, std::size_t row, std::size_t column) const {
    // A constant column may be far larger than the others.
    if (classes_[c].row(row)[column] == classes_[0].row(0)[column]) return 0.0;
    return differences_.divide(classes_[c].row(row)[column]) -
           differences_.divide(classes_[0].row(0)[column]);
  }

  /// Sum of squared distances of classes first to last from their common mean, where coordinate(c, row) gives
  /// one coordinate.
  template <typename Coordinate>
  [[nodiscard]] double squares(std::size_t first, std::size_t last, const Coordinate& coordinate) const {
    CompensatedSum sum;
    std::size_t count = 0;
    for (std::size_t c = first; c < last; ++c) {
      count += classes_[c].rows();
      for (std::size_t row = 0; row < classes_[c].rows(); ++row) sum.add(coordinate(c, row));
    }
    const double mean = sum.value() / static_cast<double>(count);
    CompensatedSum total;
    for (std::size_t c = first; c < last; ++c) {
      for (std::size_t row = 0; row < classes_[c].rows(); ++row) {
        const double distance = coordinate(c, row) - mean;
        total.add(distance * distance);
      }
    }
    return total.value();
  }

  void check_ratios() {
    CompensatedSum within;
    CompensatedSum all;
    for (std::size_t i = 0; i < classes_[0].width(); ++i) {
      const auto column = [&](std::size_t c, std::size_t row) { return from_first(c, row, i); };
      all.add(squares(0, classes_.size(), column));
      for (std::size_t c = 0; c < classes_.size(); ++c) within.add(squares(c, c + 1, column));
    }
    if (root_["ssr"].is_null() || root_["lssr"].is_null()) {
      found_.check(all.value() == 0.0 && root_["ssr"].is_null() && root_["lssr"].is_null(), "ssr, lssr",
                   "are null, but the rows are not all equal");
      return;
    }
    found_.check(is_measured("ssr", within.value() / all.value()), "ssr",
                 "is not the ratio of the sums of squares");
    // The direction attains lssr; that none has less is not proved.
    const std::vector<double> direction = root_["direction"].numbers(classes_[0].width());
    std::vector<std::vector<double>> projected(classes_.size());
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      for (std::size_t row = 0; row < classes_[c].rows(); ++row) {
        DoubleDouble sum;
        for (std::size_t i = 0; i < direction.size(); ++i) {
          if (from_first(c, row, i) == 0.0) continue;
          sum += DoubleDouble::sum(differences_.divide(classes_[c].row(row)[i]),
                                   -differences_.divide(classes_[0].row(0)[i])) *
                 DoubleDouble(direction[i]);
        }
        projected[c].push_back(sum.value());
      }
    }
    const auto along = [&](std::size_t c, std::size_t row) { return projected[c][row]; };
    double inside = 0.0;
    for (std::size_t c = 0; c < classes_.size(); ++c) inside += squares(c, c + 1, along);
    const double ratio = inside / squares(0, classes_.size(), along);
    found_.check(is_measured("lssr", ratio) && std::abs(euclidean_norm(direction) - 1.0) <= measured,
                 "lssr, direction", "are not a unit vector and the ratio along it");
    found_.not_checkable.push_back({"lssr", "attained by direction; no proof that no direction has less"});
  }
  [[nodiscard]] bool is_measured(const char* name, double value) const {
    return std::abs(root_[name].number() - value) <= measured * value + 1e-15;
  }

  void check_separation() {
    const std::string answer = root_["separable"].text();
    separable_ = answer == "yes";
    check_exact(answer);
    check_scale();
    check_margin();
    check_residual(answer == "no");
    if (answer == "undecided") {
      found_.not_checkable.push_back({"separable", "undecided: nothing is stated"});
    }
  }

  /// An exact proof of the answer, which then needs no margin and no tolerance.
  void check_exact(const std::string& stated) {
    if (!root_.has("exact")) return;
    const Field exact = root_["exact"];
    const std::string answer = exact["separable"].text();
    if (answer == "undecided") {
      found_.not_checkable.push_back({"exact", "undecided, and no proof that a limit was met"});
      return;
    }
    exact_ = true;
    found_.check(answer == stated, "separable", "is not the exact answer");
    bool holds = false;
    if (answer == "yes") {
      std::vector<std::string> normal;
      for (std::size_t i = 0; i < exact["normal"].size(); ++i) normal.push_back(exact["normal"][i].text());
      holds = separates(normal, classes_[0], classes_[1], no_row);
    } else {
      holds = meet(numerators(exact["a"], 0), numerators(exact["b"], 1), exact["denominator"].text(),
                   classes_[0], classes_[1]);
    }
    found_.check(holds, "exact", "the integers do not prove the answer");
  }

  [[nodiscard]] std::vector<Numerator> numerators(const Field& list, std::size_t c) const {
    std::vector<Numerator> result;
    for (std::size_t i = 0; i < list.size(); ++i) {
      result.push_back({position(list[i]["row"], c), list[i]["numerator"].text()});
    }
    return result;
  }

  /// Index of a row of the array among the rows of its class.
  [[nodiscard]] std::size_t position(const Field& row, std::size_t c) const {
    const std::size_t number = row.count();
    const auto at = std::lower_bound(numbers_[c].begin(), numbers_[c].end(), number);
    if (at == numbers_[c].end() || *at != number) row.refuse("a row of its class");
    return static_cast<std::size_t>(at - numbers_[c].begin());
  }

  /// scale, the largest distance of a coordinate from the mean of all rows; null beyond a double's range.
  void check_scale() {
    double largest = 0.0;
    double size = 0.0;
    for (const MatrixView<const double> rows : classes_) size = std::max(size, largest_size(rows));
    const double count = static_cast<double>(classes_[0].rows() + classes_[1].rows());
    for (std::size_t i = 0; i < classes_[0].width(); ++i) {
      CompensatedSum sum;
      for (std::size_t c = 0; c < 2; ++c) {
        for (std::size_t row = 0; row < classes_[c].rows(); ++row) sum.add(from_first(c, row, i) / count);
      }
      for (std::size_t c = 0; c < 2; ++c) {
        for (std::size_t row = 0; row < classes_[c].rows(); ++row) {
          largest = std::max(largest, std::abs(from_first(c, row, i) - sum.value()));
        }
      }
    }
    const double found = differences_.multiply(largest);
    const bool holds = root_["scale"].is_null()
                           ? !std::isfinite(found * (1.0 + measured))
                           : std::abs(root_["scale"].number() - found) <=
                                 1e-12 * found + 64.0 * unit * size + std::numeric_limits<double>::min();
    found_.check(holds, "scale", "is not the largest distance of a coordinate from the mean");
    scale_ = std::min(root_["scale"].number_or(infinity), found);
  }

  /// The least or the largest score of a class along a direction: rows that a bound of rounding leaves in
  /// question are compared without any.
  [[nodiscard]] Exact extreme(std::size_t c, const std::vector<double>& direction, bool least) const {
    const MatrixView<const double> rows = classes_[c];
    const std::span<const double> origin = rows.row(0);
    const std::vector<double> signed_direction = [&] {
      std::vector<double> result = direction;
      for (double& entry : result) entry = least ? entry : -entry;
      return result;
    }();
    std::vector<Bounded> scores;
    double most = infinity;
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      scores.push_back(difference_dot(signed_direction, rows.row(row), origin));
      if (!std::isnan(scores.back().high())) most = std::min(most, scores.back().high());
    }
    std::optional<Exact> best;
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      if (scores[row].low() > most) continue;
      const Exact score = exact_dot(direction, rows.row(row));
      if (!best || (least ? score < *best : *best < score)) best = score;
    }
    return *best;
  }

  void check_margin() {
    if (root_["normal"].size() == 0) {
      // Sets with the same mean have no direction between them.
      found_.check(root_["margin"].is_null(), "margin", "is stated without a normal");
      found_.check(exact_ || !separable_, "separable", "is yes without a normal");
      list_offset();
      return;
    }
    const std::vector<double> normal = root_["normal"].numbers(classes_[0].width());
    const Exact lowest = extreme(0, normal, true);
    const Exact highest = extreme(1, normal, false);
    const Exact gap = lowest - highest;
    found_.check(std::abs(euclidean_norm(normal) - 1.0) <= measured, "normal", "is not a unit vector");
    if (!root_["margin"].is_null()) {
      found_.check(Exact::is_product_at_most(root_["margin"].number(), exact_square(normal), gap), "margin",
                   "the normal separates the sets by less than stated");
    }
    const bool by_normal = separable_ && root_["margin"].number_or(0.0) > 0.0;
    if (separable_ && !exact_) {
      found_.check(gap.sign() > 0, "separable", "is yes, but the normal does not separate the sets");
    }
    if (!by_normal || root_["offset"].is_null()) {
      list_offset();
      return;
    }
    // Between the sets, or next to both where no double is.
    const double offset = root_["offset"].number();
    const auto lies_between = [&](double above, double below) {
      return std::isfinite(above) && std::isfinite(below) && Exact(below) < lowest && highest < Exact(above);
    };
    found_.check(lies_between(offset, offset) ||
                     lies_between(std::nextafter(offset, infinity), std::nextafter(offset, -infinity)),
                 "offset", "does not lie between the sets");
  }
  void list_offset() {
    if (!root_["offset"].is_null()) {
      found_.not_checkable.push_back({"offset", "states nothing unless the normal separates the sets"});
    }
  }

  /// Weights of the rows of a class, by row number in the array.
  [[nodiscard]] std::vector<Weight> weights(const char* name, std::size_t c) const {
    std::vector<Weight> result = root_[name].weights("row", no_row);
    for (std::size_t i = 0; i < result.size(); ++i) result[i].index = position(root_[name][i]["row"], c);
    return result;
  }

  void check_residual(bool meets) {
    const std::vector<Weight> a = weights("a", 0);
    const std::vector<Weight> b = weights("b", 1);
    const Exact total_a = exact_total(a);
    const Exact total_b = exact_total(b);
    const bool weighed = total_a.sign() > 0 && total_b.sign() > 0;
    found_.check(weighed, "a, b", "are not weights with a positive sum");
    if (!weighed) return;
    // With both sums of weights in front: total_b Σ w_a a − total_a Σ w_b b.
    std::vector<Exact> difference = exact_sum(classes_[0], a);
    const std::vector<Exact> of_b = exact_sum(classes_[1], b);
    for (std::size_t i = 0; i < difference.size(); ++i) {
      difference[i] = total_b * difference[i] - total_a * of_b[i];
    }
    const Exact totals = total_a * total_b;
    if (root_["residual"].is_null()) {
      found_.check(exact_ || !meets, "residual", "is null, but the sets are stated to meet");
      return;
    }
    const Exact residual = Exact(root_["residual"].number()) * totals;
    found_.check(exact_square(difference) <= residual * residual, "residual",
                 "the weighted points are farther apart than stated");
    if (exact_ || !meets) return;
    const Exact tolerance = root_["tolerance"].number();
    const bool is_near = std::isfinite(scale_) && residual <= tolerance * Exact(scale_) * totals;
    found_.check(is_near && is_near_in_columns(a, b, total_a, total_b, difference, tolerance), "separable",
                 "is no, but the weighted points are farther apart than the tolerance");
  }

  /// In each column |difference| <= tolerance (Σ w |a − h| + Σ w |b − h|) with h the heaviest row of A and
  /// sums of weights 1, to the rounding of the result.
  [[nodiscard]] bool is_near_in_columns(const std::vector<Weight>& a, const std::vector<Weight>& b,
                                        const Exact& total_a, const Exact& total_b,
                                        const std::vector<Exact>& difference, const Exact& tolerance) const {
    const auto heaviest = std::max_element(
        a.begin(), a.end(), [](const Weight& x, const Weight& y) { return x.weight < y.weight; });
    const std::span<const double> origin = classes_[0].row(heaviest->index);
    const Exact rounded = Exact(1.0) + Exact(64.0 * unit);
    for (std::size_t i = 0; i < difference.size(); ++i) {
      const auto spread = [&](std::size_t c, const std::vector<Weight>& weights) {
        Exact sum;
        for (const Weight& weight : weights) {
          const Exact distance = Exact(classes_[c].row(weight.index)[i]) - Exact(origin[i]);
          sum += Exact(weight.weight) * (distance.sign() < 0 ? -distance : distance);
        }
        return sum;
      };
      const Exact most = tolerance * rounded * (total_b * spread(0, a) + total_a * spread(1, b));
      if (!(difference[i] <= most && -difference[i] <= most)) return false;
    }
    return true;
  }

  Field root_;
  const std::vector<MatrixView<const double>>& classes_;
  const std::vector<std::vector<std::size_t>>& numbers_;
  bool has_labels_;
  BinaryScale differences_{};
  bool exact_ = false;
  bool separable_ = false;
  double scale_ = 0.0;
  Verification found_{};
};

}  // namespace

Verification verify_separate(const Result& result, const ClassRows& classes, const VerifyOptions&) {
  return SeparateCheck(result, classes).run();
}

}  // namespace normscope::certificates
