#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <normscope/core/parallel.hpp>

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

/// Tells whether r·(1/s − 1/s₀) passes a bound, for s² = max(0, f)/squared_radius + eps, without a root and a
/// quotient: the square of s is compared.
class PriceBounds {
 public:
  PriceBounds(const Form& form, const Extremes& known)
      : squared_radius_(form.squared_radius), eps_(form.eps), divisor_(form.divisor), known_(known) {}

  [[nodiscard]] bool is_passed(double square, double read) const {
    const double s2 = std::max(0.0, square) / squared_radius_ + eps_;
    return is_above(s2, read, known_.most.value) || is_above(s2, -read, -known_.least.value);
  }

 private:
  /// r/s > bound + r/s₀, times s s₀.
  [[nodiscard]] bool is_above(double s2, double read, double bound) const {
    const double right = bound * divisor_ + read, left = read * divisor_;
    const double difference = left * left - s2 * right * right;
    if (read > 0.0) return right <= 0.0 || difference > 0.0;
    return right < 0.0 && difference < 0.0;
  }

  double squared_radius_, eps_, divisor_;
  const Extremes& known_;
};

/// Counts components that the branches of a search look at, up to a limit.
class Work {
 public:
  explicit Work(double most) : most_(most) {}
  void add(std::uint64_t components) {
    if (static_cast<double>(done_ += components) > most_) is_spent_ = true;
  }
  [[nodiscard]] bool is_spent() const { return is_spent_; }

 private:
  double most_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> is_spent_{false};
};

}  // namespace

/// The components, the longest first: when the others are chosen, what is left changes little.
struct SetSearch::Tables {
  Tables(const Form& of, std::size_t most) : form(of), order(of.count), low(most + 1), high(most + 1) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return form.lengths[a] > form.lengths[b]; });
    gram.reserve(form.count * form.count);
    std::vector<double> others;
    for (const std::size_t k : order) {
      const std::span<const double> row = form.row(k);
      for (const std::size_t j : order) gram.push_back(row[j]);
      with_row.push_back(form.with_row[k]);
      own.push_back(row[k]);
      reads.push_back(form.reads[k]);
      others.assign(row.begin(), row.end());
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
      const auto end = static_cast<std::ptrdiff_t>(std::min(most, others.size()));
      double least = 0.0, greatest = 0.0;
      std::vector<double> smallest(others), largest(others);
      std::partial_sort(smallest.begin(), smallest.begin() + end, smallest.end());
      std::partial_sort(largest.begin(), largest.begin() + end, largest.end(), std::greater<>());
      for (std::size_t left = 1; left <= most; ++left) {
        low[left].push_back(least);
        high[left].push_back(greatest);
        if (left > others.size()) continue;
        least += std::min(0.0, smallest[left - 1]);
        greatest += std::max(0.0, largest[left - 1]);
      }
    }
  }

  const Form& form;
  std::vector<std::size_t> order;
  std::vector<double> gram{}, with_row{}, own{}, reads{};  ///< as in the form; |d_k|²
  std::vector<std::vector<double>> low, high;  ///< what left − 1 others add to a component's products
};

/// A branch and bound over what is in a set. With r more components, f grows by at most the r largest of
/// 2 d_k·(u + Σ_S d_j) + |d_k|² and the r − 1 largest products of d_k with others; prices lie between the
/// products of the ends of their factors.
class SetSearch::Branch {
 public:
  Branch(const Tables& tables, std::size_t removed, const SquareBounds* within, const Extremes& known,
         Work& work)
      : tables_(tables), form_(tables.form), within_(within), initially_(known), known_(known), work_(work) {
    for (std::size_t left = 0; left <= removed; ++left) levels_.emplace_back(left, form_.count);
    levels_.back().products = tables_.with_row;
  }

  /// The components that are first in a set that may be better than what is known.
  [[nodiscard]] std::vector<std::size_t> firsts() {
    std::vector<std::size_t> found(form_.count);
    std::iota(found.begin(), found.end(), std::size_t{0});
    if (levels_.size() <= 2) return found;
    static_cast<void>(find_improving(0, form_.row_square, form_.row_reads, levels_.size() - 1));
    found.erase(std::remove_if(found.begin(), found.end(),
                               [&](std::size_t k) { return levels_.back().may_improve[k] == 0; }),
                found.end());
    return found;
  }

  /// What is known, and the extremes of sets of this component and others behind it.
  [[nodiscard]] const Extremes& from(std::size_t first) {
    known_ = initially_;
    step(first, form_.row_square, form_.row_reads, levels_.size() - 1);
    work_.add(std::exchange(looked_at_, 0));
    return known_;
  }

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

    LargestSum less, more, down, up;  ///< what left − 1 components can add
    std::vector<char> may_improve{};  ///< whether a component and others behind it can
    std::vector<double> products;     ///< d_k·(u + Σ_S d_j)
  };

  void extend(std::size_t first, double square, double read, std::size_t left) {
    looked_at_ += form_.count - first;
    if (looked_at_ > looked_at_together) work_.add(std::exchange(looked_at_, 0));
    if (work_.is_spent() || (left > 1 && !find_improving(first, square, read, left))) return;
    for (std::size_t k = first; k < form_.count; ++k) {
      if (left == 1 || levels_[left].may_improve[k] != 0) step(k, square, read, left);
    }
  }

  void step(std::size_t k, double square, double read, std::size_t left) {
    const std::vector<double>& products = levels_[left].products;
    const double with = square + 2.0 * products[k] + tables_.own[k];
    const double reads = read + tables_.reads[k];
    const bool improves = within_ != nullptr ? PriceBounds(form_, known_).is_passed(with, reads)
                                             : with < known_.least.value || with > known_.most.value;
    if (left == 1 && !improves) return;
    set_.push_back(tables_.order[k]);
    if (improves) add(within_ != nullptr ? form_.price(with, reads) : with);
    if (left > 1) {
      const double* const row = tables_.gram.data() + k * form_.count;
      std::vector<double>& next = levels_[left - 1].products;
      for (std::size_t j = k + 1; j < form_.count; ++j) next[j] = products[j] + row[j];
      extend(k + 1, with, reads, left - 1);
    }
    set_.pop_back();
  }

  /// Finds for each component from `first` on whether a set with it and others behind it can be better than
  /// what is known; whether any can.
  bool find_improving(std::size_t first, double square, double read, std::size_t left) {
    Level& level = levels_[left];
    for (LargestSum* const sum : {&level.less, &level.more, &level.down, &level.up}) sum->clear();
    const PriceBounds prices(form_, known_);
    bool any = false;
    for (std::size_t k = form_.count; k-- > first;) {
      const double own = 2.0 * level.products[k] + tables_.own[k], reads = tables_.reads[k];
      const double low = own + tables_.low[left][k], high = own + tables_.high[left][k];
      const SquareBounds squares{square + low - level.less.total(), square + high + level.more.total()};
      const bool may = within_ == nullptr
                           ? squares.least < known_.least.value || squares.most > known_.most.value
                           : may_improve_price(prices, squares, read + reads - level.down.total(),
                                               read + reads + level.up.total());
      level.may_improve[k] = may ? 1 : 0;
      any = any || may;
      level.less.add(-low);
      level.more.add(high);
      if (within_ == nullptr) continue;
      level.down.add(-reads);
      level.up.add(reads);
    }
    return any;
  }

  [[nodiscard]] bool may_improve_price(const PriceBounds& prices, const SquareBounds& squares,
                                       double least_read, double most_read) const {
    const double least = std::max(squares.least, within_->least);
    const double most = std::min(squares.most, within_->most);
    return prices.is_passed(least, least_read) || prices.is_passed(least, most_read) ||
           prices.is_passed(most, least_read) || prices.is_passed(most, most_read);
  }

  void add(double value) {
    std::vector<std::size_t> ascending = set_;
    std::sort(ascending.begin(), ascending.end());
    known_.add(value, ascending);
  }

  static constexpr std::uint64_t looked_at_together = 1 << 16;

  const Tables& tables_;
  const Form& form_;
  const SquareBounds* within_;
  const Extremes& initially_;
  Extremes known_;
  Work& work_;
  std::uint64_t looked_at_ = 0;  ///< components that `work_` does not count yet
  std::vector<Level> levels_{};
  std::vector<std::size_t> set_{};
};

SetSearch::SetSearch(const Form& form, std::size_t most, double most_work, unsigned threads)
    : tables_(std::make_unique<Tables>(form, most)), most_work_(most_work), threads_(threads) {}
SetSearch::~SetSearch() = default;

// Each branch knows only what was known before, so that no result depends on their order.
bool SetSearch::find(std::size_t removed, const SquareBounds* within, Extremes& known) const {
  Work work(most_work_);
  const std::vector<std::size_t> firsts = Branch(*tables_, removed, within, known, work).firsts();
  work.add(tables_->order.size());
  std::vector<Extremes> found(firsts.size());
  parallel_for(firsts.size(), 1, threads_, [&](std::size_t begin, std::size_t end) {
    Branch branch(*tables_, removed, within, known, work);
    for (std::size_t i = begin; i < end && !work.is_spent(); ++i) found[i] = branch.from(firsts[i]);
  });
  if (work.is_spent()) return false;
  for (const Extremes& one : found) known.add(one);
  return true;
}

}  // namespace normscope::analysis
