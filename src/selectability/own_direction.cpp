#include "search.hpp"

#include <cmath>

#include <normscope/core/parallel.hpp>

#include "float_scores.hpp"

namespace normscope::selectability {
namespace {

/// The longest keys, which are compared with all others first.
constexpr std::size_t longest = 2 * block;

/// The keys in the order of the search. The query of a key is the key itself, so one product is the score of
/// each key under the query of the other.
struct KeyProducts {
  static constexpr std::size_t tile = block;
  const KeySet& key_set;
  const std::vector<float>& gathered;

  [[nodiscard]] std::size_t size() const { return key_set.size(); }
  [[nodiscard]] std::size_t width() const { return key_set.width(); }
  [[nodiscard]] const float* values(std::size_t rank) const {
    return gathered.empty() ? key_set.values(rank) : gathered.data() + rank * width();
  }
  [[nodiscard]] HighestScore across(const float* products, std::size_t, std::size_t,
                                    std::size_t count) const {
    return {.score = largest(products, count)};
  }
  void down(const float* products, std::size_t, std::size_t, std::size_t count, float* best) const {
    keep_larger(products, count, best);
  }
  [[nodiscard]] HighestScore find(const float*, std::size_t, std::size_t, std::size_t, std::size_t,
                                  std::size_t, float score) const {
    return {.score = score};
  }
};

}  // namespace

OwnDirection::OwnDirection(const KeySet& key_set)
    : key_set_(key_set),
      outcomes_(key_set.size(), Outcome::open),
      rivals_(key_set.size(), -std::numeric_limits<double>::infinity()) {}

std::size_t OwnDirection::steps() const {
  if (key_set_.size() <= longest || step_ == 0) return 1;
  return 1 + row_blocks(open_);
}

void OwnDirection::step(unsigned threads) {
  if (step_ == 0) {
    meet_the_longest(threads);
    gather();
  } else {
    meet_one_another(step_ - 1, threads);
  }
  ++step_;
}

void OwnDirection::meet_the_longest(unsigned threads) {
  const std::size_t n = key_set_.size();
  const std::size_t columns = std::min(n, longest);
  parallel_for(row_blocks(n), 1, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<float> scores(block * columns);
    for (std::size_t first = begin * block; first < std::min(n, end * block); first += block) {
      const std::size_t rows = std::min(block, n - first);
      multiply(key_set_.values(first), rows, key_set_.values(0), columns, key_set_.width(), scores.data());
      for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t place = first + row;
        float* own = scores.data() + row * columns;
        if (place < columns) own[place] = lowest;
        const double best = static_cast<double>(largest(own, columns));
        const double error = key_set_.product_error(key_set_.length(place), key_set_.length(0));
        rivals_[place] = best + error;
        // The length is already an upper bound.
        if (best - error >= key_set_.length(place) * key_set_.length(place))
          outcomes_[place] = Outcome::beaten;
      }
    }
  });
}

void OwnDirection::gather() {
  const std::size_t n = key_set_.size();
  order_.clear();
  for (const Outcome outcome : {Outcome::open, Outcome::beaten}) {
    for (std::size_t place = 0; place < n; ++place) {
      if (outcomes_[place] == outcome) order_.push_back(place);
    }
    if (outcome == Outcome::open) open_ = order_.size();
  }
  gathered_.clear();
  if (open_ == n || n <= longest) return;
  gathered_.reserve(n * key_set_.width());
  for (const std::size_t place : order_) {
    gathered_.insert(gathered_.end(), key_set_.values(place), key_set_.values(place) + key_set_.width());
  }
}

void OwnDirection::meet_one_another(std::size_t row_block, unsigned threads) {
  const std::size_t n = key_set_.size();
  const std::size_t first = row_block * block;
  std::vector<double> errors;
  for (std::size_t other = first; other < n; other += block) {
    // Undecided keys and decided keys are each sorted longest first; a block may contain the boundary.
    const std::size_t last = std::min(n, other + block) - 1;
    const double reach = std::max(length(other), length(std::min(std::max(open_, other), last)));
    errors.push_back(key_set_.product_error(length(first), reach));
  }
  screen_row_blocks(KeyProducts{key_set_, gathered_}, row_block, row_block + 1, open_, threads,
                    [&](std::size_t rank, HighestScore highest, std::size_t column) {
                      double& rival = rivals_[order_[rank]];
                      rival = std::max(rival,
                                       static_cast<double>(highest.score) + errors[(column - first) / block]);
                    });
}

double OwnDirection::margin(std::size_t place) const {
  // Removes the factor by which `length` was enlarged.
  const double length = key_set_.length(place);
  const double lead = length * length * (1.0 - 0x1p-46) - rivals_[place];
  return length > 0.0 ? (lead - std::abs(lead) * 0x1p-50) / length : -1.0;
}

}  // namespace normscope::selectability
