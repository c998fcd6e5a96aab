#include <normscope/analysis/subsets.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::analysis {
namespace {

/// f(S) = |u + Σ_S d_k|² and v·(u + Σ_S d_k), from inner products.
struct Form {
  std::size_t count = 0;
  std::vector<double> gram{};      ///< d_j·d_k
  std::vector<double> with_row{};  ///< u·d_k
  std::vector<double> reads{};     ///< v·d_k
  std::vector<double> lengths{};   ///< |d_k|
  double row_square = 0.0, row_length = 0.0, row_reads = 0.0, direction_length = 0.0;
  double squared_radius = 1.0, eps = 0.0, divisor = 0.0;
  double unit = 0.0;  ///< an inner product errs by at most this part of the product of the lengths
  std::vector<double> row_entries{}, direction{}, changes{};  ///< u, v and the d_k

  [[nodiscard]] std::span<const double> row(std::size_t k) const { return {gram.data() + k * count, count}; }
  [[nodiscard]] double divisor_of(double square) const {
    return std::sqrt(std::max(0.0, square) / squared_radius + eps);
  }
  /// The price of freezing of a set.
  [[nodiscard]] double price(double square, double read) const {
    const double s = divisor_of(square);
    return s > 0.0 ? read * (1.0 / s - 1.0 / divisor) : read == 0.0 ? 0.0 : std::copysign(infinity, read);
  }
  /// |u| and the `removed` largest |d_k|: no |u + Σ_S d_k| is longer.
  [[nodiscard]] double longest(std::size_t removed) const {
    std::vector<double> sorted = lengths;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    return std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(removed), row_length);
  }
};

Form form_of(const NormReading& reading, MatrixView<const double> changes) {
  Form form;
  const std::size_t n = form.count = changes.rows();
  const std::size_t width = changes.width();
  std::vector<double>& rows = form.changes;
  for (std::size_t k = 0; k < n; ++k) {
    const std::vector<double> d = reading.centered(changes.row(k));
    rows.insert(rows.end(), d.begin(), d.end());
    form.with_row.push_back(plain_dot(reading.row(), d));
    form.reads.push_back(plain_dot(reading.direction(), d));
    form.lengths.push_back(euclidean_norm(d));
  }
  form.gram.resize(n * n);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k <= j; ++k) {
      const double product = plain_dot({rows.data() + j * width, width}, {rows.data() + k * width, width});
      form.gram[j * n + k] = form.gram[k * n + j] = product;
    }
  }
  form.row_entries = reading.row();
  form.direction = reading.direction();
  form.row_square = plain_dot(reading.row(), reading.row());
  form.row_length = euclidean_norm(reading.row());
  form.row_reads = plain_dot(reading.direction(), reading.row());
  form.direction_length = euclidean_norm(reading.direction());
  form.squared_radius = reading.squared_radius();
  form.eps = reading.eps();
  form.divisor = reading.divisor();
  form.unit = rounding(static_cast<std::ptrdiff_t>(width) + 32);
  return form;
}

/// The least and the most of a number over sets, and where.
struct Extremes {
  AttainedSet least{{}, infinity}, most{{}, -infinity};

  void add(double value, const std::vector<std::size_t>& set) {
    if (value < least.value) least = {set, value};
    if (value > most.value) most = {set, value};
  }
  void add(const Extremes& other) {
    if (other.least.value < least.value) least = other.least;
    if (other.most.value > most.value) most = other.most;
  }
};

/// Bounds of f over sets, with rounding.
struct SquareBounds {
  double least = 0.0, most = infinity;
};

/// The sum of the `most` largest positive numbers that are added.
class LargestSum {
 public:
  explicit LargestSum(std::size_t most) : values_(most) {}
  void clear() { std::fill(values_.begin(), values_.end(), 0.0); }
  void add(double value) {
    if (value <= values_.back()) return;
    auto at = values_.end() - 1;
    for (; at != values_.begin() && *(at - 1) < value; --at) *at = *(at - 1);
    *at = value;
  }
  [[nodiscard]] double total() const { return std::accumulate(values_.begin(), values_.end(), 0.0); }

 private:
  std::vector<double> values_;
};

/// The extremes of f, or of the price, over all sets of at most `removed` components: a branch and bound over
/// what is in a set. With r more components, f grows by at most the r largest of 2 d_k·(u + Σ_S d_j) + |d_k|²
/// and the r − 1 largest products of d_k with others; prices lie between the products of the ends of their
/// factors.
class SetSearch {
 public:
  SetSearch(const Form& form, std::size_t removed, double most_work)
      : form_(form), order_(form.count), most_work_(most_work) {
    // With the longest first, what is left when the others are chosen changes little.
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return form.lengths[a] > form.lengths[b]; });
    for (std::size_t left = 0; left <= removed; ++left) levels_.emplace_back(left, form.count);
    std::vector<double> others;
    for (std::size_t k = 0; k < form.count; ++k) {
      const std::span<const double> row = form.row(order_[k]);
      others.assign(row.begin(), row.end());
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(order_[k]));
      const auto end = static_cast<std::ptrdiff_t>(std::min(removed, others.size()));
      double low = 0.0, high = 0.0;
      std::vector<double> smallest(others), largest(others);
      std::partial_sort(smallest.begin(), smallest.begin() + end, smallest.end());
      std::partial_sort(largest.begin(), largest.begin() + end, largest.end(), std::greater<>());
      for (std::size_t left = 1; left <= removed; ++left) {
        levels_[left].low.push_back(low);
        levels_[left].high.push_back(high);
        if (left > others.size()) continue;
        low += std::min(0.0, smallest[left - 1]);
        high += std::max(0.0, largest[left - 1]);
      }
    }
    levels_[removed].products.resize(form.count);
    for (std::size_t k = 0; k < form.count; ++k) {
      levels_[removed].products[k] = form.with_row[order_[k]];
      own_.push_back(form.row(order_[k])[order_[k]]);
      reads_.push_back(form.reads[order_[k]]);
    }
  }

  /// Makes extremes of f that are attained those of all sets; false if that takes too long.
  bool find_squares(Extremes& known) { return find(known, nullptr); }
  /// Of the price, for f that is within those bounds.
  bool find_prices(Extremes& known, const SquareBounds& within) { return find(known, &within); }

 private:
  /// What is known where a set may have `left` more components.
  struct Level {
    Level(std::size_t left, std::size_t count)
        : less(left), more(left), down(left), up(left), products(left > 0 ? count : 0) {}

    LargestSum less, more, down, up;
    std::vector<double> low{}, high{};  ///< what left − 1 others add to a component's products
    std::vector<double> products;       ///< d_k·(u + Σ_S d_j)
  };

  bool find(Extremes& known, const SquareBounds* within) {
    known_ = &known;
    within_ = within;
    work_ = 0.0;
    extend(0, form_.row_square, form_.row_reads, levels_.size() - 1);
    return work_ <= most_work_;
  }

  void extend(std::size_t first, double square, double read, std::size_t left) {
    work_ += static_cast<double>(form_.count - first);
    if (work_ > most_work_ || !may_improve(first, square, read, levels_[left])) return;
    const std::vector<double>& products = levels_[left].products;
    for (std::size_t k = first; k < form_.count; ++k) {
      const double with = square + 2.0 * products[k] + own_[k];
      const double reads = read + reads_[k];
      const double value = within_ != nullptr ? form_.price(with, reads) : with;
      set_.push_back(order_[k]);
      if (value < known_->least.value || value > known_->most.value) add(value);
      if (left > 1) {
        const std::span<const double> row = form_.row(order_[k]);
        std::vector<double>& next = levels_[left - 1].products;
        for (std::size_t j = k + 1; j < form_.count; ++j) next[j] = products[j] + row[order_[j]];
        extend(k + 1, with, reads, left - 1);
      }
      set_.pop_back();
    }
  }

  /// Whether a set with more components from `first` on can be better than what is known.
  bool may_improve(std::size_t first, double square, double read, Level& level) const {
    level.less.clear();
    level.more.clear();
    for (std::size_t k = first; k < form_.count; ++k) {
      const double own = 2.0 * level.products[k] + own_[k];
      level.less.add(-own - level.low[k]);
      level.more.add(own + level.high[k]);
    }
    const double least = square - level.less.total(), most = square + level.more.total();
    if (within_ == nullptr) return least < known_->least.value || most > known_->most.value;
    level.down.clear();
    level.up.clear();
    for (std::size_t k = first; k < form_.count; ++k) {
      level.down.add(-reads_[k]);
      level.up.add(reads_[k]);
    }
    for (const double of : {std::max(least, within_->least), std::min(most, within_->most)}) {
      for (const double its_read : {read - level.down.total(), read + level.up.total()}) {
        const double price = form_.price(of, its_read);
        if (price < known_->least.value || price > known_->most.value) return true;
      }
    }
    return false;
  }

  void add(double value) {
    std::vector<std::size_t> ascending = set_;
    std::sort(ascending.begin(), ascending.end());
    known_->add(value, ascending);
  }

  const Form& form_;
  std::vector<std::size_t> order_;
  double most_work_, work_ = 0.0;
  std::vector<Level> levels_{};
  std::vector<double> own_{}, reads_{};  ///< |d_k|² and v·d_k
  Extremes* known_ = nullptr;
  const SquareBounds* within_ = nullptr;
  std::vector<std::size_t> set_{};
};

/// Exchanges components of a set as long as that makes `objective`, of f and v·(u + Σ_S d_k), smaller.
class LocalSearch {
 public:
  using Objective = std::function<double(double square, double read)>;
  LocalSearch(const Form& form, Objective objective)
      : form_(form), objective_(std::move(objective)), in_(form.count), products_(form.with_row) {}

  /// The best set that is found of at most one component more than before.
  AttainedSet grow() {
    improve(true);
    // Where rows cancel, rounding may make each of some exchanges look better than the one before.
    for (std::size_t step = 0; step < form_.count && improve(false); ++step) {
    }
    if (value() < best_.value) {
      best_ = {{}, value()};
      for (std::size_t k = 0; k < form_.count; ++k) {
        if (in_[k]) best_.removed.push_back(k);
      }
    }
    return best_;
  }

 private:
  [[nodiscard]] double value() const { return objective_(square_, read_); }

  /// Takes the best step, if it is forced or improves: a component added or, unless it is forced, exchanged.
  bool improve(bool adds) {
    double best = adds ? infinity : value() - 1e-12 * std::abs(value());
    std::size_t to_add = form_.count, to_remove = form_.count;
    for (std::size_t k = 0; k < form_.count; ++k) {
      if (in_[k]) continue;
      const double with = square_ + 2.0 * products_[k] + form_.row(k)[k];
      if (adds) {
        const double result = objective_(with, read_ + form_.reads[k]);
        if (result < best) best = result, to_add = k;
        continue;
      }
      for (std::size_t j = 0; j < form_.count; ++j) {
        if (!in_[j]) continue;
        const double swapped = with - 2.0 * products_[j] + form_.row(j)[j] - 2.0 * form_.row(k)[j];
        const double result = objective_(swapped, read_ + form_.reads[k] - form_.reads[j]);
        if (result < best) best = result, to_add = k, to_remove = j;
      }
    }
    if (to_add == form_.count) return false;
    change(to_add, 1.0);
    if (to_remove != form_.count) change(to_remove, -1.0);
    return true;
  }

  void change(std::size_t k, double sign) {
    const std::span<const double> row = form_.row(k);
    square_ += sign * 2.0 * products_[k] + row[k];
    read_ += sign * form_.reads[k];
    for (std::size_t j = 0; j < form_.count; ++j) products_[j] += sign * row[j];
    in_[k] = sign > 0.0;
  }

  const Form& form_;
  Objective objective_;
  std::vector<bool> in_;
  std::vector<double> products_;  ///< d_k·(u + Σ_S d_j)
  double square_ = form_.row_square, read_ = form_.row_reads;
  AttainedSet best_{{}, objective_(form_.row_square, form_.row_reads)};
};

/// Diagonals D for which G − D (below), or D − G (above), is positive semidefinite for the exact G, with a
/// margin that a decomposition in float64 can see.
struct Diagonals {
  std::vector<std::vector<double>> below{}, above{};
};

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

/// s/s_S and the price for a set, from the rows themselves; infinite where nothing but rounding is left.
struct Left {
  double factor = infinity, price = infinity;
};

Left left_of(const Form& form, const std::vector<std::size_t>& removed) {
  const std::size_t width = form.row_entries.size();
  std::vector<double> row(width);
  double sizes = form.row_length;
  for (const std::size_t k : removed) sizes += form.lengths[k];
  for (std::size_t i = 0; i < width; ++i) {
    CompensatedSum sum;
    sum.add(form.row_entries[i]);
    for (const std::size_t k : removed) sum.add(form.changes[k * width + i]);
    row[i] = sum.value();
  }
  const double length = euclidean_norm(row);
  const double s = form.divisor_of(length * length);
  if (!(s * std::sqrt(form.squared_radius) > 1e-9 * sizes)) return {};
  return {form.divisor / s, plain_dot(row, form.direction) * (1.0 / s - 1.0 / form.divisor)};
}

/// Fills in the factors that bounds of f prove, and what is attained.
void finish(const Form& form, const SquareBounds& squares, const Extremes& attained, const Extremes& prices,
            SubsetBound& bound) {
  const double margin = 8.0 * unit_roundoff + form.unit;  // of a root and a quotient, and of s
  const double small = form.divisor_of(squares.least) * (1.0 - margin);
  const double large = form.divisor_of(squares.most) * (1.0 + margin);
  bound.least = form.divisor * (1.0 - margin) / large;
  bound.most = small > 0.0 ? form.divisor * (1.0 + margin) / small : infinity;
  bound.attained_most = {attained.least.removed, left_of(form, attained.least.removed).factor};
  bound.attained_least = {attained.most.removed, left_of(form, attained.most.removed).factor};
  bound.attained_least_price = {prices.least.removed, left_of(form, prices.least.removed).price};
  bound.attained_most_price = {prices.most.removed, left_of(form, prices.most.removed).price};
}

/// Bounds of the price by those of its two factors.
void bound_price(const Form& form, std::size_t removed, SubsetBound& bound) {
  std::vector<double> reads = form.reads;
  std::sort(reads.begin(), reads.end());
  double least = form.row_reads, most = form.row_reads;
  for (std::size_t k = 0; k < removed; ++k) {
    least += std::min(0.0, reads[k]);
    most += std::max(0.0, reads[reads.size() - 1 - k]);
  }
  const double error = 2.0 * form.unit * form.direction_length * form.longest(removed);
  least -= error;
  most += error;
  bound.least_price = infinity;
  bound.most_price = -infinity;
  constexpr double outwards = 1.0 + 8.0 * unit_roundoff;
  for (const double read : {least, most}) {
    for (const double factor : {bound.least - 1.0, bound.most - 1.0}) {
      const double price = read == 0.0 || factor == 0.0 ? 0.0 : read * factor / form.divisor;
      bound.least_price = std::min(bound.least_price, price < 0.0 ? price * outwards : price / outwards);
      bound.most_price = std::max(bound.most_price, price > 0.0 ? price * outwards : price / outwards);
    }
  }
}

}  // namespace

std::vector<SubsetBound> bound_subsets(const NormReading& reading, MatrixView<const double> changes,
                                       const SubsetOptions& options, const Progress& progress) {
  NORMSCOPE_ASSERT(changes.width() == reading.row().size());
  if (options.most_removed == 0 || changes.rows() > most_bounded) return {};
  const Form form = form_of(reading, changes);
  const std::size_t most = std::min(options.most_removed, form.count);
  progress("sets", 0, most);
  std::optional<Diagonals> diagonals;
  LocalSearch shorter(form, [](double square, double) { return square; });
  LocalSearch longer(form, [](double square, double) { return -square; });
  LocalSearch cheaper(form, [&](double square, double read) { return form.price(square, read); });
  LocalSearch dearer(form, [&](double square, double read) { return -form.price(square, read); });
  std::vector<SubsetBound> bounds;
  Extremes squares{{{}, form.row_square}, {{}, form.row_square}}, prices{{{}, 0.0}, {{}, 0.0}};
  bool finds_squares = true, finds_prices = true;
  for (std::size_t removed = 1; removed <= most; ++removed) {
    progress("sets", removed - 1, most);
    SubsetBound bound{.removed = removed};
    const auto n = static_cast<std::ptrdiff_t>(removed);
    const double longest = form.longest(removed);
    // Of what is tried, and of the bounds that exclude the rest, whose terms have no larger sum.
    const double error = 8.0 * (form.unit + rounding(8 * n + 16)) * longest * longest;
    SquareBounds proved{-infinity, infinity};
    const AttainedSet least = shorter.grow(), largest = longer.grow();
    const AttainedSet low = cheaper.grow(), high = dearer.grow();
    squares.add(Extremes{least, {largest.removed, -largest.value}});
    prices.add(Extremes{low, {high.removed, -high.value}});
    std::optional<SetSearch> search;
    if (finds_squares) search.emplace(form, removed, options.most_work);
    finds_squares = finds_squares && search->find_squares(squares);
    if (finds_squares) {
      proved = {squares.least.value - error, squares.most.value + error};
    } else {
      bound.proof = SubsetProof::relaxation;
      if (!diagonals) diagonals = diagonals_of(form);
      for (const std::vector<double>& diagonal : diagonals->below) {
        const RelaxedMinimum below(form, diagonal, 1.0, removed);
        if (!(below.bound() > proved.least)) continue;
        proved.least = below.bound();
        bound.below = below.relaxation();
      }
      for (const std::vector<double>& diagonal : diagonals->above) {
        const RelaxedMinimum above(form, diagonal, -1.0, removed);
        if (!(above.bound() < proved.most)) continue;
        proved.most = above.bound();
        bound.above = above.relaxation();
      }
    }
    finds_prices = finds_prices && finds_squares && search->find_prices(prices, proved);
    finish(form, proved, squares, prices, bound);
    bound_price(form, removed, bound);
    if (finds_prices) {
      const double s = form.divisor_of(proved.least);
      // Of v·(u + Σ_S d_k), of the factor, and of 1/s_S.
      const double slack =
          s > 0.0 ? 8.0 * form.unit * form.direction_length * longest * (1.0 / s + 1.0 / form.divisor) +
                        form.direction_length * longest * error / (form.squared_radius * s * s * s)
                  : infinity;
      bound.least_price = std::max(bound.least_price, prices.least.value - slack);
      bound.most_price = std::min(bound.most_price, prices.most.value + slack);
    }
    bounds.push_back(std::move(bound));
  }
  return bounds;
}

}  // namespace normscope::analysis
