#include "nearest_hulls.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::proof {
namespace {

using Eigen::Index;
using Wide = ActiveSet<DoubleDouble>;

/// Number of multiplications from which another thread pays off.
constexpr std::size_t score_grain = 1'000'000;

/// Σ x_i y_i in eight interleaved partial sums, which compilers vectorize.
double product(std::span<const double> x, std::span<const double> y) {
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= x.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += x[i + lane] * y[i + lane];
  }
  for (; i < x.size(); ++i) sums[0] += x[i] * y[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

constexpr Index sets = 2;

/// Rows of each set that are priced together until none is violated by more than this fraction of the largest
/// violation.
constexpr std::size_t pool_rows = 128;
constexpr double pool_rest = 0.3;
/// Iterations without a decrease of |x| after which rounding is assumed to cause a cycle. At distance 1, a
/// row violated by v decreases |x| by only v², which falls below rounding long before v does.
constexpr std::size_t most_stalled_steps = 100;
constexpr int refinements = 6;

template <typename Scalar>
struct Precision;
template <>
struct Precision<double> {
  static constexpr double zero = 0x1p-49;   ///< relative to the longest row
  static constexpr double noise = 0x1p-50;  ///< relative to the longest row
  static constexpr double gap = 1e-12;      ///< relative to the distance
};
template <>
struct Precision<DoubleDouble> {
  static constexpr double zero = 0x1p-98;
  static constexpr double noise = 0x1p-100;
  static constexpr double gap = 1e-12;
};

/// Wolfe's method over two sets of rows.
template <typename Scalar>
class Descent {
 public:
  using Set = ActiveSet<Scalar>;
  using Vector = typename Set::Vector;

  Descent(const CenteredHulls& hulls, const Progress& progress)
      : hulls_(hulls),
        progress_(progress),
        set_(hulls.dimension(), sets, hulls.longest() > 0.0 ? hulls.longest() : 1.0),
        scores_(hulls.rows()) {}

  void run(const std::vector<PointWeight>& start) {
    begin(start);
    while (true) {
      const std::vector<std::size_t> pool = price();
      report();
      if (done_ || !descend(pool)) break;
    }
    progress_("nearing, digits", digits(Precision<Scalar>::gap), digits(Precision<Scalar>::gap));
  }

  [[nodiscard]] const Set& set() const { return set_; }
  [[nodiscard]] const Vector& difference() const { return x_; }
  [[nodiscard]] double gap() const { return gap_; }
  /// By the lengths of the active rows; the others do not contribute to rounding.
  [[nodiscard]] bool is_zero() const {
    double size = 0.0;
    for (Index j = 0; j < set_.size(); ++j) {
      size += to_double(set_.weights()[j]) * hulls_.length(set_.rows()[static_cast<std::size_t>(j)]);
    }
    return length_ <= Precision<Scalar>::zero * size;
  }

 private:
  [[nodiscard]] Vector point(std::size_t row) const {
    if constexpr (std::is_same_v<Scalar, double>) {
      return Eigen::Map<const Eigen::VectorXd>(hulls_.row(row).data(), hulls_.dimension());
    } else {
      return hulls_.exact(row);
    }
  }

  void begin(std::vector<PointWeight> start) {
    std::stable_sort(start.begin(), start.end(),
                     [](const PointWeight& x, const PointWeight& y) { return x.weight > y.weight; });
    for (const PointWeight& share : start)
      set_.add(share.id, hulls_.group(share.id), point(share.id), share.weight);
    const std::vector<Index>& groups = set_.group_of();
    for (Index group = 0; group < sets; ++group) {
      if (std::find(groups.begin(), groups.end(), group) != groups.end()) continue;
      const std::size_t row = hulls_.first_of(group);
      set_.add(row, group, point(row), 1.0);
    }
    settled();
  }

  /// Whether weights were found; x and its direction are those of the active set.
  bool settled() {
    const bool sound = set_.settle();
    if (sound) x_ = set_.point();
    if (x_.size() == 0) x_ = Vector::Zero(hulls_.dimension());
    using std::sqrt;
    const Scalar length = sqrt(x_.squaredNorm());
    length_ = to_double(length);
    direction_.assign(static_cast<std::size_t>(x_.size()), 0.0);
    for (Index i = 0; i < x_.size() && length_ > 0.0; ++i) {
      direction_[static_cast<std::size_t>(i)] = to_double(x_[i] / length);
    }
    return sound;
  }

  /// xᵀ row / |x|, to the accuracy of the arithmetic.
  [[nodiscard]] double score(std::size_t row) const {
    if constexpr (std::is_same_v<Scalar, double>) {
      return hulls_.score(direction_, row);
    } else {
      return to_double(point(row).dot(x_) / Scalar(length_));
    }
  }

  /// Mean score of the active rows of a group.
  [[nodiscard]] double level(Index group) const {
    Scalar total = 0.0;
    for (Index j = 0; j < set_.size(); ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (set_.group_of()[at] != group) continue;
      if constexpr (std::is_same_v<Scalar, double>) {
        total += set_.weights()[j] * scores_[set_.rows()[at]];
      } else {
        total += set_.weights()[j] * point(set_.rows()[at]).dot(x_);
      }
    }
    return std::is_same_v<Scalar, double> ? to_double(total) : to_double(total / Scalar(length_));
  }

  /// The most violated rows, and whether no violation is significant.
  std::vector<std::size_t> price() {
    std::vector<std::size_t> pool;
    gap_ = 0.0;
    violation_ = 0.0;
    for (Index group = 0; group < sets; ++group) {
      const std::size_t first = hulls_.first_of(group);
      const std::size_t last = hulls_.end_of(group);
      hulls_.score(direction_, first, last, scores_);
      levels_[group] = level(group);
      const std::vector<std::size_t> lowest = lowest_rows(first, last);
      double violation = 0.0;
      for (const std::size_t row : lowest) violation = std::max(violation, levels_[group] - scores_[row]);
      gap_ += violation;
      violation_ = std::max(violation_, violation);
      pool.insert(pool.end(), lowest.begin(), lowest.end());
    }
    done_ = is_zero() || gap_ <= Precision<Scalar>::gap * length_;
    gap_ = length_ > 0.0 ? gap_ / length_ : 0.0;
    return pool;
  }

  /// Inactive rows with the lowest scores, computed in twice the precision where that may change the order.
  std::vector<std::size_t> lowest_rows(std::size_t first, std::size_t last) {
    std::vector<bool> holds(last - first);
    for (const std::size_t row : set_.rows()) {
      if (row >= first && row < last) holds[row - first] = true;
    }
    std::vector<std::size_t> rows;
    for (std::size_t row = first; row < last; ++row) {
      if (!holds[row - first]) rows.push_back(row);
    }
    const std::size_t kept = std::min(rows.size(), pool_rows);
    const auto lower = [this](std::size_t i, std::size_t j) {
      return scores_[i] < scores_[j] || (scores_[i] == scores_[j] && i < j);
    };
    if constexpr (std::is_same_v<Scalar, double>) {
      std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(kept), rows.end(), lower);
      rows.resize(kept);
    } else {
      std::sort(rows.begin(), rows.end(), lower);
      double least = std::numeric_limits<double>::infinity();
      std::size_t priced = 0;
      while (priced < rows.size() &&
             scores_[rows[priced]] - hulls_.score_error(rows[priced]) - longest_error() <= least) {
        scores_[rows[priced]] = score(rows[priced]);
        least = std::min(least, scores_[rows[priced]]);
        ++priced;
      }
      rows.resize(priced);
      std::sort(rows.begin(), rows.end(), lower);
      rows.resize(std::min(rows.size(), pool_rows));
    }
    return rows;
  }

  [[nodiscard]] double longest_error() const { return 0x1p-50 * hulls_.longest(); }

  /// Adds rows of the pool while one is violated by a fair fraction of the largest violation. Returns false
  /// if the distance does not decrease.
  bool descend(const std::vector<std::size_t>& pool) {
    bool nearer = false;
    std::vector<std::size_t> left = pool;
    while (true) {
      std::size_t best = left.size();
      double most = std::max(pool_rest * violation_, Precision<Scalar>::noise * hulls_.longest());
      for (std::size_t i = 0; i < left.size(); ++i) {
        const std::size_t row = left[i];
        const double violation = levels_[hulls_.group(row)] - (nearer ? score(row) : scores_[row]);
        if (!(violation > most)) continue;
        most = violation;
        best = i;
      }
      if (best == left.size()) return nearer;
      const std::size_t row = left[best];
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
      if (set_.holds(row) || !set_.add(row, hulls_.group(row), point(row), 0.0)) continue;
      if (!settled()) return false;
      stalled_ = length_ < shortest_ ? 0 : stalled_ + 1;
      shortest_ = std::min(shortest_, length_);
      if (stalled_ > most_stalled_steps) return false;
      nearer = true;
      update_levels();
    }
  }

  /// Levels after a change, from one active row of each group.
  void update_levels() {
    for (Index group = 0; group < sets; ++group) {
      const auto at = std::find(set_.group_of().begin(), set_.group_of().end(), group);
      levels_[group] = score(set_.rows()[static_cast<std::size_t>(at - set_.group_of().begin())]);
    }
  }

  void report() const {
    const std::size_t total = digits(Precision<Scalar>::gap);
    progress_("nearing, digits", std::min(digits(gap_), total), total);
  }

  const CenteredHulls& hulls_;
  const Progress& progress_;
  Set set_;
  Vector x_{};
  double length_ = 0.0;
  double shortest_ = std::numeric_limits<double>::infinity();
  std::size_t stalled_ = 0;
  std::vector<double> direction_{};
  std::vector<double> scores_;
  double levels_[sets] = {};
  double violation_ = 0.0;
  double gap_ = 0.0;
  bool done_ = false;
};

/// Converts weights in doubles, some of which may be 0, to twice the precision, with sum 1 in each group.
std::vector<PointWeight> shares_of(const std::vector<std::size_t>& rows, const std::vector<Index>& group_of,
                                   const Wide::Vector& weights) {
  DoubleDouble sums[2] = {0.0, 0.0};
  for (std::size_t j = 0; j < rows.size(); ++j) {
    const DoubleDouble& weight = weights[static_cast<Index>(j)];
    if (weight > 0.0) sums[group_of[j]] += weight;
  }
  std::vector<PointWeight> result;
  for (std::size_t j = 0; j < rows.size(); ++j) {
    const DoubleDouble& weight = weights[static_cast<Index>(j)];
    if (weight > 0.0) result.push_back({rows[j], (weight / sums[group_of[j]]).value()});
  }
  return result;
}

/// Refines the weights of `set` and the difference with residuals in twice the precision.
void refine(const CenteredHulls& hulls, const ActiveSet<double>& set, Wide::Vector& weights,
            Wide::Vector& x) {
  const Index k = set.size();
  Wide::Matrix points(hulls.dimension(), k);
  for (Index j = 0; j < k; ++j) points.col(j) = hulls.exact(set.rows()[static_cast<std::size_t>(j)]);
  const auto rounded = [](const Wide::Vector& values) {
    Eigen::VectorXd result(values.size());
    for (Index i = 0; i < values.size(); ++i) result[i] = values[i].value();
    return result;
  };
  double last = std::numeric_limits<double>::infinity();
  for (int step = 0; step < refinements; ++step) {
    const Wide::Vector along = points.transpose() * x;
    Wide::Vector levels = Wide::Vector::Zero(sets);
    Wide::Vector sums = Wide::Vector::Zero(sets);
    for (Index j = 0; j < k; ++j) {
      const Index group = set.group_of()[static_cast<std::size_t>(j)];
      levels[group] += weights[j] * along[j];
      sums[group] += weights[j];
    }
    Wide::Vector slack(k);
    for (Index j = 0; j < k; ++j) {
      const Index group = set.group_of()[static_cast<std::size_t>(j)];
      slack[j] = levels[group] / sums[group] - along[j];
    }
    const Wide::Vector missing = Wide::Vector::Constant(sets, 1.0) - sums;
    const Wide::Vector off = points * weights - x;
    Eigen::VectorXd of_weights;
    Eigen::VectorXd of_point;
    set.correction(rounded(off), rounded(slack), rounded(missing), of_weights, of_point);
    const double size = of_weights.norm();
    // If it does not converge, the points are too close to dependent for float64.
    if (!std::isfinite(size) || size > 0.5 * last) break;
    last = size;
    for (Index j = 0; j < k; ++j) weights[j] += of_weights[j];
    for (Index i = 0; i < x.size(); ++i) x[i] += of_point[i];
  }
}

}  // namespace

HullFrame::HullFrame(MatrixView<const double> a, MatrixView<const double> b)
    : center(a.width()), extents(a.width()) {
  const double rows = static_cast<double>(a.rows() + b.rows());
  std::vector<CompensatedSum> totals(a.width());
  std::vector<double> low(a.row(0).begin(), a.row(0).end());
  std::vector<double> high = low;
  for (const MatrixView<const double>& set : {a, b}) {
    for (std::size_t row = 0; row < set.rows(); ++row) {
      const std::span<const double> values = set.row(row);
      for (std::size_t i = 0; i < totals.size(); ++i) {
        totals[i].add(values[i] / rows);
        low[i] = std::min(low[i], values[i]);
        high[i] = std::max(high[i], values[i]);
      }
    }
  }
  for (std::size_t i = 0; i < center.size(); ++i) {
    center[i] = std::clamp(totals[i].value(), low[i], high[i]);
    extents[i] = std::max(high[i] - center[i], center[i] - low[i]);
  }
}

CenteredHulls::CenteredHulls(MatrixView<const double> a, MatrixView<const double> b, const HullFrame& frame,
                             unsigned threads)
    : a_(a), b_(b), threads_(threads), center_(frame.center), values_(rows() * a.width()), lengths_(rows()) {
  parallel_for(rows(), 1 + score_grain / (8 * a.width()), threads, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      const bool of_a = group(r) == 0;
      const std::span<const double> given = of_a ? a_.row(r) : b_.row(r - a_.rows());
      double* to = values_.data() + r * center_.size();
      for (std::size_t i = 0; i < center_.size(); ++i) {
        to[i] = of_a ? given[i] - center_[i] : center_[i] - given[i];
      }
      lengths_[r] = std::sqrt(product(row(r), row(r)));
    }
  });
  longest_ = largest_size(lengths_);
}

CenteredHulls::Exact CenteredHulls::exact(std::size_t row) const {
  const bool of_a = group(row) == 0;
  const std::span<const double> given = of_a ? a_.row(row) : b_.row(row - a_.rows());
  Exact result(dimension());
  for (std::size_t i = 0; i < center_.size(); ++i) {
    const DoubleDouble difference = two_sum(given[i], -center_[i]);
    result[static_cast<Eigen::Index>(i)] = of_a ? difference : -difference;
  }
  return result;
}

double CenteredHulls::score(std::span<const double> direction, std::size_t row) const {
  return product(this->row(row), direction);
}

void CenteredHulls::score(std::span<const double> direction, std::size_t first, std::size_t last,
                          std::vector<double>& scores) const {
  parallel_for(last - first, 1 + score_grain / center_.size(), threads_,
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t r = first + begin; r < first + end; ++r)
                   scores[r] = product(row(r), direction);
               });
}

double CenteredHulls::score_error(std::size_t row) const {
  // Entries and products round by u, the partial sums by (width/8 + 3) u; as much again for a rounded
  // direction.
  return (static_cast<double>(center_.size()) / 8.0 + 16.0) * 0x1p-53 * lengths_[row];
}

NearestHulls nearest_hulls(const CenteredHulls& hulls, const std::vector<PointWeight>& start,
                           const Progress& progress) {
  Descent<double> descent(hulls, progress);
  descent.run(start);
  NearestHulls result;
  result.gap = descent.gap();
  result.is_zero = descent.is_zero();
  Wide::Vector weights = descent.set().weights().cast<DoubleDouble>();
  result.difference = descent.difference().cast<DoubleDouble>();
  refine(hulls, descent.set(), weights, result.difference);
  result.shares = shares_of(descent.set().rows(), descent.set().group_of(), weights);
  return result;
}

NearestHulls nearest_hulls_closely(const CenteredHulls& hulls, const std::vector<PointWeight>& start,
                                   const Progress& progress) {
  Descent<DoubleDouble> descent(hulls, progress);
  descent.run(start);
  NearestHulls result;
  result.gap = descent.gap();
  result.is_zero = descent.is_zero();
  result.difference = descent.difference();
  result.shares = shares_of(descent.set().rows(), descent.set().group_of(), descent.set().weights());
  return result;
}

}  // namespace normscope::proof
