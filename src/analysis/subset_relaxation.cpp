#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include <normscope/core/linear_algebra.hpp>

#include "subset_form.hpp"

namespace normscope::analysis {
namespace {

/// Components of which eigenvalues are computed.
constexpr std::size_t most_decomposed = 1024;

/// With scales s_k = |d_k|^`power`, D = λ diag(s²), λ the least eigenvalue of G_jk/(s_j s_k).
std::vector<double> scaled_diagonal(const Form& form, double power) {
  const std::size_t n = form.count;
  const double longest = *std::max_element(form.lengths.begin(), form.lengths.end());
  std::vector<double> scales, scaled(n * n);
  double trace = 0.0;
  for (const double length : form.lengths) {
    scales.push_back(std::pow(std::max(length / longest, 1e-6), power));
    trace += length * length / (scales.back() * scales.back());
  }
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < n; ++k) scaled[j * n + k] = form.gram[j * n + k] / (scales[j] * scales[k]);
  }
  const Svd svd = singular_value_decomposition(MatrixView<const double>(scaled.data(), n, n));
  const double found = svd.values.size() == n && std::isfinite(svd.values.back()) ? svd.values.back() : 0.0;
  const double margin = 8.0 * (form.unit + static_cast<double>(n) * unit_roundoff) * trace;
  std::vector<double> diagonal;
  for (const double scale : scales) diagonal.push_back(std::max(0.0, found - margin) * scale * scale);
  return diagonal;
}

/// Indices of the `count` smallest numbers that are negative.
std::vector<std::size_t> most_negative(const std::vector<double>& values, std::size_t count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto kept = static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(),
                    [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  order.resize(static_cast<std::size_t>(kept));
  while (!order.empty() && values[order.back()] >= 0.0) order.pop_back();
  return order;
}

/// sign · f relaxed to the convex sign·|u|² + Σ linear_k z_k + zᵀAz, A = sign (G − D), minimized over z in
/// [0, 1]ᴷ with Σz <= n by the method of Frank and Wolfe; every iterate proves a bound by its tangent.
class RelaxedMinimum {
 public:
  RelaxedMinimum(const Form& form, const std::vector<double>& diagonal, double sign, std::size_t removed)
      : form_(form),
        diagonal_(diagonal),
        sign_(sign),
        removed_(removed),
        point_(form.count),
        image_(form.count) {
    for (std::size_t k = 0; k < form.count; ++k) {
      linear_.push_back(sign * (2.0 * form.with_row[k] + diagonal[k]));
    }
    constexpr int most_steps = 400;
    for (int step = 0; step < most_steps && advance(); ++step) {
    }
    point_ = best_point_;
    set_image();
    bound_ = tangent(slope()) - error();
  }

  /// A proved bound of f: a lower one for sign 1, an upper one for sign −1.
  [[nodiscard]] double bound() const { return sign_ * bound_; }
  [[nodiscard]] Relaxation relaxation() const { return {diagonal_, best_point_}; }

 private:
  [[nodiscard]] double entry(std::size_t j, std::size_t k) const {
    return sign_ * (form_.row(j)[k] - (j == k ? diagonal_[j] : 0.0));
  }

  [[nodiscard]] std::vector<double> slope() const {
    std::vector<double> slope(form_.count);
    for (std::size_t k = 0; k < form_.count; ++k) slope[k] = linear_[k] + 2.0 * image_[k];
    return slope;
  }

  /// The least value of the tangent at the point.
  [[nodiscard]] double tangent(const std::vector<double>& slope) const {
    double value = sign_ * form_.row_square - plain_dot(point_, image_);
    for (const std::size_t k : most_negative(slope, removed_)) value += slope[k];
    return value;
  }

  /// Takes a step, unless none is left.
  bool advance() {
    const std::size_t n = form_.count;
    const std::vector<double> slope = this->slope();
    if (const double value = tangent(slope); value > best_) {
      best_ = value;
      best_point_ = point_;
    }
    // Towards the corner where the tangent is least, to the minimum on the segment.
    std::vector<double> direction(n), moved(n);
    for (std::size_t k = 0; k < n; ++k) {
      direction[k] = -point_[k];
      moved[k] = -image_[k];
    }
    for (const std::size_t k : most_negative(slope, removed_)) {
      direction[k] += 1.0;
      for (std::size_t j = 0; j < n; ++j) moved[j] += entry(j, k);
    }
    const double descent = plain_dot(slope, direction);
    const double curvature = plain_dot(direction, moved);
    if (!(descent < -1e-9 * form_.row_square)) return false;
    const double step = curvature > 0.0 ? std::min(1.0, -descent / (2.0 * curvature)) : 1.0;
    double sum = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      point_[k] = std::clamp(point_[k] + step * direction[k], 0.0, 1.0);
      image_[k] += step * moved[k];
      sum += point_[k];
    }
    const auto most = static_cast<double>(removed_);
    for (std::size_t k = 0; k < n && sum > most; ++k) point_[k] *= (1.0 - 1e-14) * most / sum;
    return true;
  }

  /// A times the point.
  void set_image() {
    for (std::size_t j = 0; j < form_.count; ++j) {
      image_[j] = 0.0;
      for (std::size_t k = 0; k < form_.count; ++k) image_[j] += entry(j, k) * point_[k];
    }
  }

  /// A bound of the error of the tangent's least value by rounding: of all products, with lengths in place of
  /// inner products.
  [[nodiscard]] double error() const {
    double along = 0.0, own = 0.0;
    for (std::size_t k = 0; k < form_.count; ++k) {
      along += form_.lengths[k] * point_[k];
      own += point_[k] * diagonal_[k];
    }
    std::vector<double> sizes(form_.count);
    for (std::size_t k = 0; k < form_.count; ++k) {
      sizes[k] =
          2.0 * form_.row_length * form_.lengths[k] + 3.0 * diagonal_[k] + 2.0 * form_.lengths[k] * along;
    }
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    const auto taken = static_cast<std::ptrdiff_t>(std::min(removed_, sizes.size()));
    const double size =
        std::accumulate(sizes.begin(), sizes.begin() + taken, form_.row_square + along * along + own);
    return 2.0 * (form_.unit + rounding(3 * static_cast<std::ptrdiff_t>(form_.count) + 16)) * size;
  }

  const Form& form_;
  const std::vector<double>& diagonal_;
  double sign_;
  std::size_t removed_;
  std::vector<double> linear_{}, point_, image_, best_point_ = point_;
  double best_ = -infinity, bound_ = -infinity;
};

}  // namespace

Diagonals diagonals_of(const Form& form) {
  const std::size_t n = form.count;
  Diagonals diagonals{.below = {std::vector<double>(n)}};
  // Rows of D − G have no larger entries beside the diagonal than on it.
  const double all = std::accumulate(form.lengths.begin(), form.lengths.end(), 0.0);
  std::vector<double> sums(n);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < n; ++k) sums[j] += std::abs(form.gram[j * n + k]);
    sums[j] += 2.0 * (form.unit + static_cast<double>(n) * unit_roundoff) * form.lengths[j] * all;
  }
  diagonals.above.push_back(std::move(sums));
  if (n > most_decomposed || !(all > 0.0)) return diagonals;
  for (const double power : {1.0, 1.5, 2.0}) diagonals.below.push_back(scaled_diagonal(form, power));
  return diagonals;
}

RelaxedBound relaxed_bound(const Form& form, const std::vector<double>& diagonal, double sign,
                           std::size_t removed) {
  const RelaxedMinimum found(form, diagonal, sign, removed);
  return {found.bound(), found.relaxation()};
}

}  // namespace normscope::analysis
