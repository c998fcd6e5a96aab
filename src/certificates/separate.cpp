#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include <normscope/certificates/verify.hpp>
#include <normscope/core/error.hpp>
#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/sum.hpp>

#include "fields.hpp"
#include "twofold.hpp"

namespace normscope::certificates {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

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
    // Sums of squares must neither overflow nor vanish.
    scale_ = BinaryScale::of(largest);
    for (const MatrixView<const double> rows_of : classes.rows) values_.push_back(scale_.divided(rows_of));
    for (std::size_t c = 0; c < values_.size(); ++c) {
      rows_.emplace_back(values_[c].data(), classes.rows[c].rows(), classes.rows[c].width());
    }
    numbers_ = classes.numbers;
  }

  Verification run() {
    check_ratio();
    if (root_.has("separable")) {
      check_scale();
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
    for (const CompensatedSum& sum : sums) result.push_back(sum.value() / static_cast<double>(count));
    return result;
  }

  /// Sum of squared distances of the classes' rows from a point, along a direction where there is one.
  [[nodiscard]] double squares(std::size_t first, std::size_t last, const std::vector<double>& from,
                               const std::vector<double>& along) const {
    CompensatedSum total;
    for (std::size_t c = first; c < last; ++c) {
      for (std::size_t row = 0; row < rows_[c].rows(); ++row) {
        CompensatedSum shadow;
        for (std::size_t i = 0; i < from.size(); ++i) {
          const double distance = rows_[c].row(row)[i] - from[i];
          if (along.empty()) total.add(distance * distance);
          if (!along.empty()) shadow.add(distance * along[i]);
        }
        if (!along.empty()) total.add(shadow.value() * shadow.value());
      }
    }
    return total.value();
  }

  [[nodiscard]] double ratio(const std::vector<double>& along) const {
    const double all = squares(0, rows_.size(), mean_of(0, rows_.size()), along);
    double within = 0.0;
    for (std::size_t c = 0; c < rows_.size(); ++c) within += squares(c, c + 1, mean_of(c, c + 1), along);
    return within / all;
  }

  void check_ratio() {
    if (root_["ssr"].is_null()) {
      const double all = squares(0, rows_.size(), mean_of(0, rows_.size()), {});
      found_.check(all == 0.0, "ssr", "is null, yet the rows are not one point");
      return;
    }
    const double ssr = ratio({});
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
    found_.check(std::abs(stated("scale") - largest) <= 1e-12 * largest + last_bits, "scale",
                 "is not the largest distance of a coordinate from the mean");
  }

  void check_margin() {
    const std::vector<double> normal =
        root_["normal"].size() == 0 ? std::vector<double>{} : root_["normal"].numbers(rows_.front().width());
    const bool separable = root_["separable"].text() == "yes";
    // Sets of one mean have no direction between them.
    if (normal.empty()) {
      found_.check(!separable && root_["margin"].is_null(), "margin", "is stated without a normal");
      return;
    }
    // From a row of B, so that a place far from zero costs nothing.
    const std::span<const double> origin = rows_[1].row(0);
    const Twofold least = lowest(normal, rows_[0], origin, 1.0);
    const Twofold most = lowest(normal, rows_[1], origin, -1.0);
    const Twofold gap = least - most;
    const double length = euclidean_norm(normal);
    const double margin = scale_.divide(root_["margin"].number_or(-infinity));
    if (std::isfinite(margin)) {
      found_.check(
          to_double(gap.value) - gap.error >= margin * length - last_bits * std::abs(margin * length),
          "margin", "the normal does not keep the sets as far apart as stated");
    }
    if (!separable) return;
    const double offset = stated("offset");
    found_.check(margin > 0.0 && length > 0.0, "separable", "is yes without a positive margin");
    const std::vector<double> zero(origin.size(), 0.0);
    const Twofold place = dot(normal, origin, zero);
    const Twofold beyond = Twofold{DoubleDouble(offset), 4.0 * unit * std::abs(offset)} - place;
    found_.check(lies_below(beyond, least) && lies_below(most, beyond), "offset",
                 "does not lie between the sets");
  }

  /// Of directionᵀ(row − origin) the one that is lowest; highest where `sign` is negative.
  static Twofold lowest(const std::vector<double>& direction, MatrixView<const double> rows,
                        std::span<const double> origin, double sign) {
    Twofold best = dot(direction, rows.row(0), origin);
    for (std::size_t row = 1; row < rows.rows(); ++row) {
      const Twofold next = dot(direction, rows.row(row), origin);
      const bool lower = sign > 0.0 ? next.value < best.value : best.value < next.value;
      if (lower) best.value = next.value;
      best.error = std::max(best.error, next.error);
    }
    return best;
  }

  /// Whether a < b, to what rounding leaves open.
  static bool lies_below(const Twofold& a, const Twofold& b) {
    const Twofold gap = b - a;
    return to_double(gap.value) + gap.error > 0.0;
  }

  /// Weights on rows of a class, by the numbers those have in their array.
  [[nodiscard]] std::vector<Weight> weights(const char* name, std::size_t c) const {
    std::vector<Weight> result = root_[name].weights("row", std::numeric_limits<std::size_t>::max());
    const std::vector<std::size_t>& numbers = numbers_[c];
    for (Weight& weight : result) {
      const auto at = std::lower_bound(numbers.begin(), numbers.end(), weight.index);
      if (at == numbers.end() || *at != weight.index) root_[name].refuse("rows of its class");
      weight.index = static_cast<std::size_t>(at - numbers.begin());
    }
    return result;
  }

  void check_residual() {
    constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    const std::vector<Weight> a = weights("a", 0);
    const std::vector<Weight> b = weights("b", 1);
    const Total total_a = total_of(a, none);
    const Total total_b = total_of(b, none);
    const double claimed = stated("residual");
    const bool weighed = total_a.valid && total_b.valid;
    found_.check(weighed, "a, b", "are no weights with a sum");
    if (!weighed) return;
    const double allowed =
        claimed * (1.0 + last_bits) + nothing * std::sqrt(static_cast<double>(rows_[0].width()));
    found_.check(distance_at_most(rows_[0], a, rows_[1], b) <= allowed, "residual",
                 "the weighted points are farther apart than stated");
    if (root_["separable"].text() != "no") return;
    found_.check(claimed <= root_["tolerance"].number() * stated("scale") * (1.0 + last_bits), "separable",
                 "is no, yet the weighted points are farther apart than tolerance * scale");
  }

  Field root_;
  BinaryScale scale_{};
  std::vector<std::vector<double>> values_{};
  std::vector<MatrixView<const double>> rows_{};
  std::vector<std::vector<std::size_t>> numbers_{};
  Verification found_{};
};

}  // namespace

Verification verify_separate(const Result& result, const ClassRows& classes, const VerifyOptions&) {
  return SeparateCheck(result, classes).run();
}

}  // namespace normscope::certificates
