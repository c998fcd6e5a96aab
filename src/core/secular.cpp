#include <normscope/core/linear_algebra.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

#include "secular_kernel.hpp"

namespace normscope {
namespace {

using detail::PoleSum;

/// Number of gaps that share one far expansion.
constexpr std::size_t run_length = 24;
constexpr int max_iterations = 200;

/// The secular function for a run of neighbouring gaps: poles [near_begin, near_end) one by one, the others
/// as two Taylor expansions, one for the poles below and one for those above.
class RunField {
 public:
  RunField(std::span<const double> poles, std::span<const double> weights, std::size_t first_gap,
           std::size_t end_gap)
      : poles_(poles), weights_(weights) {
    const double low = poles[first_gap];
    const double high = poles[end_gap];
    center_ = low + 0.5 * (high - low);
    radius_ = std::max(0.5 * (high - low), std::numeric_limits<double>::min());
    const double reach = detail::far_ratio * radius_;
    // The run's own poles are always near, whatever the rounding of the reach.
    near_begin_ = std::min<std::size_t>(
        first_gap, std::lower_bound(poles.begin(), poles.end(), center_ - reach) - poles.begin());
    near_end_ = std::max<std::size_t>(
        end_gap + 1, std::upper_bound(poles.begin(), poles.end(), center_ + reach) - poles.begin());
    below_.fill(0.0);
    above_.fill(0.0);
    detail::expand_poles(poles.first(near_begin_), weights.first(near_begin_), center_, radius_,
                         below_.data());
    detail::expand_poles(poles.subspan(near_end_), weights.subspan(near_end_), center_, radius_,
                         above_.data());
  }

  /// Sums over the poles up to `gap` (all terms negative) and above it (all positive), at
  /// poles[origin] + offset inside the gap.
  void evaluate(std::size_t gap, std::size_t origin, double offset, PoleSum& below, PoleSum& above) const {
    const double at = ((poles_[origin] - center_) + offset) / radius_;
    below = expansion(below_, at);
    above = expansion(above_, at);
    add(near_begin_, gap + 1, origin, offset, below);
    add(gap + 1, near_end_, origin, offset, above);
  }

 private:
  using Coefficients = std::array<double, detail::expansion_terms>;

  [[nodiscard]] PoleSum expansion(const Coefficients& coefficients, double at) const {
    double value = 0.0;
    double slope = 0.0;
    for (std::size_t j = detail::expansion_terms; j-- > 0;) {
      slope = slope * at + value;
      value = value * at + coefficients[j];
    }
    return {value, slope / radius_};
  }

  void add(std::size_t begin, std::size_t end, std::size_t origin, double offset, PoleSum& sum) const {
    const PoleSum part = detail::sum_poles(poles_.subspan(begin, end - begin),
                                           weights_.subspan(begin, end - begin), poles_[origin], offset);
    sum.value += part.value;
    sum.slope += part.slope;
  }

  std::span<const double> poles_;
  std::span<const double> weights_;
  double center_ = 0.0;
  double radius_ = 0.0;
  std::size_t near_begin_ = 0;
  std::size_t near_end_ = 0;
  Coefficients below_{};
  Coefficients above_{};
};

/// The step that solves the model  c + s/(left − η) + S/(right − η) = 0, whose two poles have the slopes of
/// the two sums; `left` < 0 < `right` are the distances to the ends of the gap.
double middle_way_step(const PoleSum& below, const PoleSum& above, double left, double right) {
  const double s = below.slope * left * left;
  const double S = above.slope * right * right;
  const double c = (below.value - below.slope * left) + (above.value - above.slope * right);
  // c η² − b η + a = 0; the root in (left, right) is a·2/(b ± sqrt(b² − 4ac)).
  const double b = c * (left + right) + s + S;
  const double a = left * right * (below.value + above.value);
  const double discriminant = std::sqrt(std::max(0.0, b * b - 4.0 * a * c));
  return b >= 0.0 ? 2.0 * a / (b + discriminant) : (b - discriminant) / (2.0 * c);
}

/// The midpoint of a bracket: geometric if it spans several powers of two on one side of zero.
double bisect(double low, double high) {
  const double smaller = std::min(std::abs(low), std::abs(high));
  const double larger = std::max(std::abs(low), std::abs(high));
  if (low * high > 0.0 && larger > 16.0 * smaller) {
    return std::copysign(std::sqrt(smaller) * std::sqrt(larger), low);
  }
  return low + 0.5 * (high - low);
}

SecularRoot solve(std::span<const double> poles, const RunField& field, std::size_t gap) {
  const double width = poles[gap + 1] - poles[gap];
  PoleSum below;
  PoleSum above;
  double offset = 0.5 * width;
  field.evaluate(gap, gap, offset, below, above);

  // f increases through the gap: a positive value in the middle means that the root is in the lower half.
  const bool lower = below.value + above.value >= 0.0;
  const std::size_t origin = lower ? gap : gap + 1;
  const double left_end = lower ? 0.0 : -width;
  const double right_end = lower ? width : 0.0;
  double low = lower ? 0.0 : -0.5 * width;
  double high = lower ? 0.5 * width : 0.0;
  if (!lower) offset = -0.5 * width;

  constexpr double rounding = 0.5 * std::numeric_limits<double>::epsilon();
  for (int iteration = 0; iteration < max_iterations; ++iteration) {
    const double value = below.value + above.value;
    if (std::abs(value) <= 16.0 * rounding * (above.value - below.value)) break;
    (value > 0.0 ? high : low) = offset;

    double next = offset + middle_way_step(below, above, left_end - offset, right_end - offset);
    if (!(next > low && next < high)) {
      next = bisect(low, high);
      if (!(next > low && next < high)) break;
    }
    if (std::abs(next - offset) <= rounding * std::abs(next)) {
      offset = next;
      break;
    }
    offset = next;
    field.evaluate(gap, origin, offset, below, above);
  }
  return {origin, offset};
}

}  // namespace

std::vector<SecularRoot> secular_roots(std::span<const double> poles, std::span<const double> weights,
                                       unsigned threads, const Progress& progress) {
  NORMSCOPE_ASSERT(poles.size() == weights.size());
  if (poles.size() < 2) return {};
  const std::size_t gaps = poles.size() - 1;
  std::vector<SecularRoot> roots(gaps);
  const std::size_t runs = (gaps + run_length - 1) / run_length;
  // A run of few poles is cheaper than starting a thread.
  const std::size_t grain = std::max<std::size_t>(1, 200'000 / (run_length * poles.size()));
  std::mutex reporting;
  std::size_t done = 0;
  parallel_for(runs, grain, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t run = begin; run < end; ++run) {
      {
        const std::lock_guard lock(reporting);
        progress("solving for axes", done++, runs);
      }
      const std::size_t first = run * run_length;
      const std::size_t last = std::min(gaps, first + run_length);
      const RunField field(poles, weights, first, last);
      for (std::size_t gap = first; gap < last; ++gap) roots[gap] = solve(poles, field, gap);
    }
  });
  return roots;
}

std::vector<SecularRoot> secular_roots_reference(std::span<const double> poles,
                                                 std::span<const double> weights) {
  std::vector<SecularRoot> roots;
  for (std::size_t gap = 0; gap + 1 < poles.size(); ++gap) {
    const auto f = [&](std::size_t origin, long double offset) {
      long double sum = 0.0L;
      for (std::size_t i = 0; i < poles.size(); ++i) {
        const long double difference = static_cast<long double>(poles[i]) - poles[origin];
        sum += weights[i] / (difference - offset);
      }
      return sum;
    };
    const long double width = static_cast<long double>(poles[gap + 1]) - poles[gap];
    const bool lower = f(gap, width / 2) >= 0.0L;
    const std::size_t origin = lower ? gap : gap + 1;
    long double low = lower ? 0.0L : -width / 2;
    long double high = lower ? width / 2 : 0.0L;
    for (;;) {
      const long double middle = low + (high - low) / 2;
      if (middle == low || middle == high) break;
      (f(origin, middle) > 0.0L ? high : low) = middle;
    }
    roots.push_back({origin, static_cast<double>(lower ? high : low)});
  }
  return roots;
}

}  // namespace normscope
