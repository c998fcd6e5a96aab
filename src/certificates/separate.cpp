#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include <fmt/core.h>

#include <normscope/certificates/verify.hpp>
#include <normscope/core/error.hpp>
#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/rounding.hpp>
#include <normscope/numeric/sum.hpp>

#include "fields.hpp"
#include "integers.hpp"
#include "twofold.hpp"

namespace normscope::certificates {
namespace {

class SeparateCheck {
 public:
  SeparateCheck(const Result& result, const ClassRows& classes) : root_(result.fields().root()) {
    const Field rows = root_["rows"];
    bool fits = rows.size() == classes.rows.size();
    double largest = 0.0;
    for (std::size_t c = 0; fits && c < classes.rows.size(); ++c) {
      fits = rows[c].count() == classes.rows[c].rows() && root_["width"].count() == classes.rows[c].width();
      largest = std::max(largest, largest_size(classes.rows[c]));
    }
    if (!fits) {
      throw Error(ErrorCode::Shape,
                  fmt::format("{}: is of other numbers of rows than the inputs have", result.source()));
    }
    // Sums of squares must neither overflow nor underflow.
    scale_ = BinaryScale::of(largest);
    for (const MatrixView<const double> rows_of : classes.rows) values_.push_back(scale_.divided(rows_of));
    for (std::size_t c = 0; c < values_.size(); ++c) {
      rows_.emplace_back(values_[c].data(), classes.rows[c].rows(), classes.rows[c].width());
    }
    numbers_ = classes.numbers;
    given_ = classes.rows;
  }

  Verification run() {
    check_ratio();
    if (root_.has("separable")) {
      check_scale();
      check_exact();
      check_margin();
      check_residual();
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] double stated(const char* name) const { return scale_.divide(root_[name].number()); }

  [[nodiscard]] std::vector<double> mean_of(std::size_t first, std::size_t last) const {
    std::vector<CompensatedSum> sums(rows_.front().width());
    std::size_t count = 0;
    for (std::size_t c = first; c < last; ++c) {
      count += rows_[c].rows();
      for (std::size_t row = 0; row < rows_[c].rows(); ++row) {
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(rows_[c].row(row)[i]);
      }
    }
    std::vector<double> result;
    result.reserve(sums.size());
    for (const CompensatedSum& sum : sums) result.push_back(sum.value() / static_cast<double>(count));
    return result;
  }

  /// Relative to the first row, in units in which the largest entry is near 1. Otherwise the squares would
  /// lose the variation of data far from zero, or of a column far smaller than a constant one.
  [[nodiscard]] double from_first(std::span<const double> row, std::size_t column) const {
    return differences_.divide(row[column]) - differences_.divide(given_[0].row(0)[column]);
  }

  void scale_differences() {
    double largest = 0.0;
    for (std::size_t i = 0; i < given_[0].width(); ++i) {
      double low = given_[0].row(0)[i];
      double high = low;
      for (const MatrixView<const double> rows : given_) {
        for (std::size_t row = 0; row < rows.rows(); ++row) {
          low = std::min(low, rows.row(row)[i]);
          high = std::max(high, rows.row(row)[i]);
        }
      }
      varies_.push_back(low < high);
      largest = std::max(largest, std::min(high - low, std::numeric_limits<double>::max()));
    }
    differences_ = BinaryScale::of(largest);
  }

  /// Sum of squared distances of the rows from the mean of their class.
  [[nodiscard]] double squares(std::size_t first, std::size_t last) const {
    CompensatedSum total;
    for (std::size_t i = 0; i < varies_.size(); ++i) {
      if (!varies_[i]) continue;
      CompensatedSum sum;
      std::size_t count = 0;
      for (std::size_t c = first; c < last; ++c) {
        count += given_[c].rows();
        for (std::size_t row = 0; row < given_[c].rows(); ++row) sum.add(from_first(given_[c].row(row), i));
      }
      const double mean = sum.value() / static_cast<double>(count);
      for (std::size_t c = first; c < last; ++c) {
        for (std::size_t row = 0; row < given_[c].rows(); ++row) {
          const double distance = from_first(given_[c].row(row), i) - mean;
          total.add(distance * distance);
        }
      }
    }
    return total.value();
  }

  void check_ratio() {
    scale_differences();
    const double all = squares(0, given_.size());
    if (root_["ssr"].is_null()) {
      found_.check(all == 0.0, "ssr", "is null, but the rows are not all equal");
      return;
    }
    double within = 0.0;
    for (std::size_t c = 0; c < given_.size(); ++c) within += squares(c, c + 1);
    const double ssr = within / all;
    found_.check(std::abs(root_["ssr"].number() - ssr) <= 1e-9 * ssr + 1e-15, "ssr",
                 "is not the ratio of the sums of squares");
    found_.not_checkable.push_back({"lssr", "the result proves no lower bound of it over all directions"});
  }

  void check_scale() {
    const std::vector<double> mean = mean_of(0, rows_.size());
    double largest = 0.0;
    for (const MatrixView<const double> rows : rows_) {
      for (std::size_t row = 0; row < rows.rows(); ++row) {
        for (std::size_t i = 0; i < mean.size(); ++i) {
          largest = std::max(largest, std::abs(rows.row(row)[i] - mean[i]));
        }
      }
    }
    // Null if it exceeds a double's range; subnormal distances have few bits.
    const double least = scale_.divide(std::numeric_limits<double>::denorm_min());
    const bool is_so = root_["scale"].is_null()
                           ? !std::isfinite(scale_.multiply(largest * (1.0 + 1e-12)))
                           : std::abs(stated("scale") - largest) <= 1e-12 * largest + last_bits + least;
    found_.check(is_so, "scale", "is not the largest distance of a coordinate from the mean");
  }

  /// An exact proof of the answer, which then needs no margin and no tolerance.
  void check_exact() {
    if (!root_.has("exact")) return;
    const Field exact = root_["exact"];
    const std::string answer = exact["separable"].text();
    if (answer == "undecided") return;
    exact_ = true;
    found_.check(answer == root_["separable"].text(), "separable", "is not the exact answer");
    std::optional<bool> holds;
    if (answer == "yes") {
      std::vector<std::string> normal;
      for (std::size_t i = 0; i < exact["normal"].size(); ++i) normal.push_back(exact["normal"][i].text());
      holds = separates(normal, given_[0], given_[1]);
    } else {
      holds = meet(numerators(exact["a"], 0), numerators(exact["b"], 1), exact["denominator"].text(),
                   given_[0], given_[1]);
    }
    if (holds) {
      found_.check(*holds, "exact", "the integers do not prove the answer");
    } else {
      found_.not_checkable.push_back({"exact", "this build has no arithmetic for integers of any size"});
    }
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

  void check_margin() {
    if (root_["normal"].size() == 0) {
      // Sets with the same mean have no direction between them.
      found_.check(root_["margin"].is_null(), "margin", "is stated without a normal");
      found_.check(exact_ || root_["separable"].text() != "yes", "separable", "is yes without a normal");
      return;
    }
    const std::vector<double> normal = root_["normal"].numbers(rows_.front().width());
    const bool separable = root_["separable"].text() == "yes";
    const Along a(given_[0], normal);
    const Along b(given_[1], normal);
    const BinaryScale scale = BinaryScale::of(std::max(a.largest(), b.largest()));
    // Relative to the row of B with the highest score, so that data far from zero lose no precision.
    const std::vector<double> origin = b.row(b.highest(scale), scale);
    const Twofold least = a.lowest(scale, origin, 1.0);
    const Twofold most = b.lowest(scale, origin, -1.0);
    const Twofold gap = least - most;
    const double length = euclidean_norm(normal);
    const double margin = scale.divide(root_["margin"].number_or(-infinity));
    if (std::isfinite(margin)) {
      found_.check(
          to_double(gap.value) - gap.error >= margin * length - last_bits * std::abs(margin * length),
          "margin", "the normal separates the sets by less than stated");
    }
    if (!separable || (exact_ && !(margin > 0.0))) return;
    found_.check(margin > 0.0 && length > 0.0, "separable", "is yes without a positive margin");
    if (root_["offset"].is_null()) return;
    const double offset = scale.divide(root_["offset"].number());
    const std::vector<double> zero(origin.size(), 0.0);
    const Twofold place = dot(a.normal(), origin, zero);
    const Twofold beyond = Twofold{DoubleDouble(offset), 4.0 * unit * std::abs(offset)} - place;
    found_.check(lies_below(beyond, least) && lies_below(most, beyond), "offset",
                 "does not lie between the sets");
  }

  /// The columns of the rows with nonzero entries of the normal; other columns may have any size.
  class Along {
   public:
    Along(MatrixView<const double> rows, const std::vector<double>& normal) : rows_(rows) {
      for (std::size_t i = 0; i < normal.size(); ++i) {
        if (normal[i] == 0.0) continue;
        columns_.push_back(i);
        normal_.push_back(normal[i]);
      }
    }

    [[nodiscard]] const std::vector<double>& normal() const { return normal_; }
    [[nodiscard]] double largest() const {
      double result = 0.0;
      for (std::size_t row = 0; row < rows_.rows(); ++row) {
        for (const std::size_t i : columns_) result = std::max(result, std::abs(rows_.row(row)[i]));
      }
      return result;
    }
    [[nodiscard]] std::vector<double> row(std::size_t row, const BinaryScale& scale) const {
      std::vector<double> result;
      for (const std::size_t i : columns_) result.push_back(scale.divide(rows_.row(row)[i]));
      return result;
    }
    [[nodiscard]] std::size_t highest(const BinaryScale& scale) const {
      const std::vector<double> origin = row(0, scale);
      std::size_t best = 0;
      DoubleDouble most;
      for (std::size_t r = 1; r < rows_.rows(); ++r) {
        const DoubleDouble next = dot(normal_, row(r, scale), origin).value;
        if (most < next) {
          most = next;
          best = r;
        }
      }
      return best;
    }
    /// The lowest value of directionᵀ(row − origin); the highest if `sign` is negative.
    [[nodiscard]] Twofold lowest(const BinaryScale& scale, const std::vector<double>& origin,
                                 double sign) const {
      Twofold best = dot(normal_, row(0, scale), origin);
      for (std::size_t r = 1; r < rows_.rows(); ++r) {
        const Twofold next = dot(normal_, row(r, scale), origin);
        const bool lower = sign > 0.0 ? next.value < best.value : best.value < next.value;
        if (lower) best.value = next.value;
        best.error = std::max(best.error, next.error);
      }
      return best;
    }

   private:
    MatrixView<const double> rows_;
    std::vector<std::size_t> columns_{};
    std::vector<double> normal_{};
  };

  /// Whether a < b, up to rounding.
  static bool lies_below(const Twofold& a, const Twofold& b) {
    const Twofold gap = b - a;
    return to_double(gap.value) + gap.error > 0.0;
  }

  /// Weights of the rows of a class, by row number in the array.
  [[nodiscard]] std::vector<Weight> weights(const char* name, std::size_t c) const {
    std::vector<Weight> result = root_[name].weights("row", std::numeric_limits<std::size_t>::max());
    for (std::size_t i = 0; i < result.size(); ++i) result[i].index = position(root_[name][i]["row"], c);
    return result;
  }

  void check_residual() {
    constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    const std::vector<Weight> a = weights("a", 0);
    const std::vector<Weight> b = weights("b", 1);
    const Total total_a = total_of(a, none);
    const Total total_b = total_of(b, none);
    const double claimed = scale_.divide(root_["residual"].number_or(infinity));
    const bool weighed = total_a.valid && total_b.valid;
    found_.check(weighed, "a, b", "are not weights with a positive sum");
    if (!weighed) return;
    const double allowed =
        claimed * (1.0 + last_bits) + nothing * std::sqrt(static_cast<double>(rows_[0].width()));
    found_.check(distance_at_most(rows_[0], a, rows_[1], b) <= allowed, "residual",
                 "the weighted points are farther apart than stated");
    if (exact_ || root_["separable"].text() != "no") return;
    const double scale = scale_.divide(root_["scale"].number_or(infinity));
    found_.check(claimed <= root_["tolerance"].number() * scale * (1.0 + last_bits), "separable",
                 "is no, but the weighted points are farther apart than tolerance * scale");
  }

  Field root_;
  BinaryScale scale_{};
  std::vector<std::vector<double>> values_{};
  std::vector<MatrixView<const double>> rows_{};
  std::vector<std::vector<std::size_t>> numbers_{};
  std::vector<MatrixView<const double>> given_{};  ///< the rows before division
  BinaryScale differences_{};
  std::vector<bool> varies_{};
  bool exact_ = false;
  Verification found_{};
};

}  // namespace

Verification verify_separate(const Result& result, const ClassRows& classes, const VerifyOptions&) {
  return SeparateCheck(result, classes).run();
}

}  // namespace normscope::certificates
