#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "subset_form.hpp"

namespace normscope::analysis {
namespace {

/// The sum of the `most` largest positive numbers that are added.
class LargestSum {
 public:
  explicit LargestSum(std::size_t most) : values_(most) {}
  void clear() {
    std::fill(values_.begin(), values_.end(), 0.0);
    total_ = 0.0;
  }
  void add(double value) {
    if (values_.empty() || value <= values_.back()) return;
    auto at = values_.end() - 1;
    for (; at != values_.begin() && *(at - 1) < value; --at) *at = *(at - 1);
    *at = value;
    total_ = std::accumulate(values_.begin(), values_.end(), 0.0);
  }
  [[nodiscard]] double total() const { return total_; }

 private:
  std::vector<double> values_;
  double total_ = 0.0;
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
  /// The extremes of the price, for f that is within those bounds.
  bool find_prices(Extremes& known, const SquareBounds& within) { return find(known, &within); }

 private:
  /// What is known where a set may have `left` more components.
  struct Level {
    Level(std::size_t left, std::size_t count)
        : less(others(left)),
          more(others(left)),
          down(others(left)),
          up(others(left)),
          may_improve(left > 1 ? count : 0),
          products(left > 0 ? count : 0) {}
    static std::size_t others(std::size_t left) { return left - std::min<std::size_t>(left, 1); }

    LargestSum less, more, down, up;    ///< what left − 1 components can add
    std::vector<char> may_improve{};    ///< whether a component and others behind it can
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
    if (work_ > most_work_) return;
    Level& level = levels_[left];
    if (left > 1 && !find_improving(first, square, read, level)) return;
    const std::vector<double>& products = level.products;
    for (std::size_t k = first; k < form_.count; ++k) {
      if (left > 1 && level.may_improve[k] == 0) continue;
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

  /// Finds for each component from `first` on whether a set with it and others behind it can be better than
  /// what is known; whether any can.
  bool find_improving(std::size_t first, double square, double read, Level& level) const {
    for (LargestSum* const sum : {&level.less, &level.more, &level.down, &level.up}) sum->clear();
    bool any = false;
    for (std::size_t k = form_.count; k-- > first;) {
      const double own = 2.0 * level.products[k] + own_[k];
      const double low = own + level.low[k], high = own + level.high[k];
      const SquareBounds squares{square + low - level.less.total(), square + high + level.more.total()};
      const bool may = within_ == nullptr
                           ? squares.least < known_->least.value || squares.most > known_->most.value
                           : may_improve_price(squares, read + reads_[k] - level.down.total(),
                                               read + reads_[k] + level.up.total());
      level.may_improve[k] = may ? 1 : 0;
      any = any || may;
      level.less.add(-low);
      level.more.add(high);
      if (within_ == nullptr) continue;
      level.down.add(-reads_[k]);
      level.up.add(reads_[k]);
    }
    return any;
  }

  [[nodiscard]] bool may_improve_price(const SquareBounds& squares, double least_read,
                                       double most_read) const {
    for (const double of : {std::max(squares.least, within_->least), std::min(squares.most, within_->most)}) {
      for (const double its_read : {least_read, most_read}) {
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

}  // namespace

bool find_squares(const Form& form, std::size_t removed, double most_work, Extremes& known) {
  return SetSearch(form, removed, most_work).find_squares(known);
}

bool find_prices(const Form& form, std::size_t removed, double most_work, const SquareBounds& within,
                 Extremes& known) {
  return SetSearch(form, removed, most_work).find_prices(known, within);
}

}  // namespace normscope::analysis
