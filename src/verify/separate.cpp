#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/verify/verify.hpp>

#include "arithmetic.hpp"
#include "document.hpp"
#include "exact_numbers.hpp"

namespace normscope::verify {
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
        labels_(classes.labels),
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
    check_classes();
    check_ratios();
    if (classes_.size() == 2) {
      check_separation();
    }
    return std::move(found_);
  }

 private:
  /// Rows, and with two classes the hyperplane, say which class is which. Which labels were left out, as by
  /// --classes, only the command line tells.
  void check_classes() {
    found_.check(root_.has("classes") == has_labels_, "classes", "are stated without labels, or missing");
    if (!has_labels_ || !root_.has("classes")) return;
    std::vector<std::int64_t> stated;
    for (std::size_t c = 0; c < root_["classes"].size(); ++c) stated.push_back(root_["classes"][c].integer());
    if (labels_.empty() || stated == labels_) return;
    found_.not_checkable.push_back({"classes", "are not all labels in order, and nothing else tells which"});
  }

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
    const std::optional<Scatter> scatter = exact_scatter(classes_);
    check_rank(scatter);
    const Squares rows = squares_of_rows(scatter);
    if (root_["ssr"].is_null() || root_["lssr"].is_null()) {
      found_.check(rows.all.sign() == 0 && root_["ssr"].is_null() && root_["lssr"].is_null(), "ssr, lssr",
                   "are null, but the rows are not all equal");
      const std::vector<double> none = root_["direction"].numbers(root_["direction"].size());
      found_.check(largest_size(none) == 0.0, "direction", "is stated of equal rows");
      return;
    }
    found_.check(is_measured("ssr", rows), "ssr", "is not the ratio of the sums of squares");
    const std::vector<double> direction = root_["direction"].numbers(classes_[0].width());
    found_.check(is_measured("lssr", squares_along(direction, scatter)) &&
                     std::abs(euclidean_norm(direction) - 1.0) <= measured,
                 "lssr, direction", "are not a unit vector and the ratio along it");
    check_least(scatter);
  }
  /// No direction has a ratio below lssr − `measured`: S_W − (lssr − measured) S_T has no negative
  /// eigenvalue.
  void check_least(const std::optional<Scatter>& scatter) {
    const Exact least = Exact(root_["lssr"].number()) - Exact(measured);
    if (least.sign() <= 0) return;
    if (!scatter) {
      found_.not_checkable.push_back(
          {"lssr", "attained by direction; that no direction has less is proved up to 64 columns alone"});
      return;
    }
    const auto [numerator, denominator] = least.fraction();
    IntegerForm form = scatter->within;
    for (std::size_t i = 0; i < form.entries.size(); ++i) {
      form.entries[i] = denominator * form.entries[i] - numerator * scatter->total.entries[i];
    }
    if (semidefinite_rank(std::move(form)).has_value()) {
      found_.check(true, "lssr", "");
    } else {
      // The search is in float64, which misses the least ratio of columns that are nearly dependent.
      found_.not_checkable.push_back(
          {"lssr", "attained by direction, but not the least: another direction has a smaller ratio"});
    }
  }

  /// The rank of the differences between rows.
  void check_rank(const std::optional<Scatter>& scatter) {
    std::size_t rows = 0;
    for (const MatrixView<const double> of_class : classes_) rows += of_class.rows();
    const std::size_t stated = root_["rank"].count();
    const std::size_t most = std::min(rows - 1, classes_[0].width());
    const std::size_t least = rank_of_differences_at_least(classes_);
    std::optional<std::size_t> rank;
    if (least == most) {
      rank = most;
    } else if (scatter) {
      rank = semidefinite_rank(scatter->total);
    }
    if (stated == rank) {
      found_.check(true, "rank", "");
    } else if (stated > rank.value_or(most)) {
      found_.check(false, "rank", fmt::format("is larger than that of the rows, {}", rank.value_or(most)));
    } else {
      found_.not_checkable.push_back(
          {"rank", rank
                       ? fmt::format("of exact rows is {}: some were taken for combinations of others", *rank)
                       : "that no other row is independent is proved up to 64 columns alone"});
    }
  }

  /// Sums of squared distances from the means of classes and from the mean of all rows, in common units.
  struct Squares {
    Exact within{};
    Exact all{};
  };
  [[nodiscard]] Squares squares_of_rows(const std::optional<Scatter>& scatter) const {
    Squares result;
    for (std::size_t i = 0; i < classes_[0].width(); ++i) {
      if (scatter) {
        result.within += Exact::of(scatter->within.at(i, i));
        result.all += Exact::of(scatter->total.at(i, i));
      } else {
        add_squares(result, [&](std::size_t c, std::size_t row) { return from_first(c, row, i); });
      }
    }
    return result;
  }
  /// Those of the products of rows with a direction.
  [[nodiscard]] Squares squares_along(const std::vector<double>& direction,
                                      const std::optional<Scatter>& scatter) const {
    Squares result;
    if (scatter) {
      for (std::size_t i = 0; i < direction.size(); ++i) {
        for (std::size_t j = 0; j < direction.size(); ++j) {
          const Exact factor = Exact(direction[i]) * Exact(direction[j]);
          result.within += factor * Exact::of(scatter->within.at(i, j));
          result.all += factor * Exact::of(scatter->total.at(i, j));
        }
      }
      return result;
    }
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
    add_squares(result, [&](std::size_t c, std::size_t row) { return projected[c][row]; });
    return result;
  }
  template <typename Coordinate>
  void add_squares(Squares& to, const Coordinate& coordinate) const {
    // A direction may overflow its products: sums of 0 then prove no ratio.
    const auto exact = [](double sum) { return std::isfinite(sum) ? Exact(sum) : Exact(); };
    to.all += exact(squares(0, classes_.size(), coordinate));
    for (std::size_t c = 0; c < classes_.size(); ++c) to.within += exact(squares(c, c + 1, coordinate));
  }
  [[nodiscard]] bool is_measured(const char* name, const Squares& found) const {
    const Exact off = Exact(root_[name].number()) * found.all - found.within;
    const Exact most = Exact(measured) * found.within + Exact(1e-15) * found.all;
    return found.all.sign() > 0 && off <= most && -off <= most;
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
    // An offset states nothing of sets that the normal does not separate.
    if (!by_normal || root_["offset"].is_null()) return;
    // Between the sets, or next to both where no double is.
    const double offset = root_["offset"].number();
    const auto lies_between = [&](double above, double below) {
      return std::isfinite(above) && std::isfinite(below) && Exact(below) < lowest && highest < Exact(above);
    };
    found_.check(lies_between(offset, offset) ||
                     lies_between(std::nextafter(offset, infinity), std::nextafter(offset, -infinity)),
                 "offset", "does not lie between the sets");
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
    const auto is_one = [](const Exact& total) {
      const Exact off = total - Exact(1.0);
      return off <= Exact(measured) && -off <= Exact(measured);
    };
    found_.check(is_one(total_a) && is_one(total_b), "a, b", "are weights with a sum other than 1");
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
  const std::vector<std::int64_t>& labels_;
  bool has_labels_;
  BinaryScale differences_{};
  bool exact_ = false;
  bool separable_ = false;
  double scale_ = 0.0;
  Verification found_{};
};

}  // namespace

Verification verify_separate(const Result& result, const ClassRows& classes, const VerifyOptions&) {
  Verification found = SeparateCheck(result, classes).run();
  list_unproved(found, result.fields());
  return found;
}

}  // namespace normscope::verify
