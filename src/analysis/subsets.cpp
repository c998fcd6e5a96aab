#include <normscope/analysis/subsets.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

#include "subset_form.hpp"

namespace normscope::analysis {

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

namespace {

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
                                       const SubsetOptions& options, const Progress& progress,
                                       unsigned threads) {
  NORMSCOPE_ASSERT(changes.width() == reading.row().size());
  if (options.most_removed == 0 || changes.rows() > most_bounded) return {};
  const Form form = form_of(reading, changes);
  const std::size_t most = std::min(options.most_removed, form.count);
  progress("sets", 0, most);
  const SetSearch search(form, most, options.most_work, threads);
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
    // It bounds the error of what is tried and of the bounds that exclude the rest, whose terms have no
    // larger sum.
    const double error = 8.0 * (form.unit + rounding(8 * n + 16)) * longest * longest;
    SquareBounds proved{-infinity, infinity};
    const AttainedSet least = shorter.grow(), largest = longer.grow();
    const AttainedSet low = cheaper.grow(), high = dearer.grow();
    squares.add(Extremes{least, {largest.removed, -largest.value}});
    prices.add(Extremes{low, {high.removed, -high.value}});
    finds_squares = finds_squares && search.find_squares(removed, squares);
    if (finds_squares) {
      proved = {squares.least.value - error, squares.most.value + error};
    } else {
      bound.proof = SubsetProof::relaxation;
      if (!diagonals) diagonals = diagonals_of(form);
      for (const std::vector<double>& diagonal : diagonals->below) {
        RelaxedBound below = relaxed_bound(form, diagonal, 1.0, removed);
        if (!(below.value > proved.least)) continue;
        proved.least = below.value;
        bound.below = std::move(below.relaxation);
      }
      for (const std::vector<double>& diagonal : diagonals->above) {
        RelaxedBound above = relaxed_bound(form, diagonal, -1.0, removed);
        if (!(above.value < proved.most)) continue;
        proved.most = above.value;
        bound.above = std::move(above.relaxation);
      }
    }
    finds_prices = finds_prices && finds_squares && search.find_prices(removed, proved, prices);
    finish(form, proved, squares, prices, bound);
    bound_price(form, removed, bound);
    if (finds_prices) {
      const double s = form.divisor_of(proved.least);
      // The errors of v·(u + Σ_S d_k), of the factor, and of 1/s_S.
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
