#include <normscope/proof/separate.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

#include "nearest_hulls.hpp"
#include "separation_bounds.hpp"

namespace normscope::proof {
namespace {

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

}  // namespace normscope::proof
