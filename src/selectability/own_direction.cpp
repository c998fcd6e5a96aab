#include "own_direction.hpp"

#include <cmath>

#include <normscope/core/parallel.hpp>

#include "products.hpp"

namespace normscope::selectability {
namespace {

/// The longest keys, which are compared with all others first.
constexpr std::size_t longest = 2 * block;

std::size_t blocks(std::size_t count) { return (count + block - 1) / block; }

}  // namespace

OwnDirection::OwnDirection(const KeySet& key_set)
    : key_set_(key_set),
      outcomes_(key_set.size(), Outcome::open),
      rivals_(key_set.size(), -std::numeric_limits<double>::infinity()) {}

std::size_t OwnDirection::steps() const {
  if (key_set_.size() <= longest || step_ == 0) return 1;
  return 1 + blocks(open_);
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
  parallel_for(blocks(n), 1, threads, [&](std::size_t begin, std::size_t end) {
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

const float* OwnDirection::values(std::size_t rank) const {
  return gathered_.empty() ? key_set_.values(rank) : gathered_.data() + rank * key_set_.width();
}

void OwnDirection::meet_one_another(std::size_t row_block, unsigned threads) {
  const std::size_t n = key_set_.size();
  const std::size_t first = row_block * block;
  const std::size_t rows = std::min(block, open_ - first);
  // Each pair of undecided keys is multiplied once: earlier blocks have covered this one.
  const std::size_t tail = blocks(n - first);
  std::vector<float> bests(tail * block, lowest);
  std::vector<double> errors(tail);
  parallel_for(tail, 1, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<float> scores(block * block);
    std::vector<float> columns_best(block);
    for (std::size_t index = begin; index < end; ++index) {
      const std::size_t other = first + index * block;
      const std::size_t columns = std::min(block, n - other);
      multiply(values(first), rows, values(other), columns, key_set_.width(), scores.data());
      std::fill(columns_best.begin(), columns_best.end(), lowest);
      for (std::size_t row = 0; row < rows; ++row) {
        float* own = scores.data() + row * columns;
        if (index == 0) own[row] = lowest;
        bests[index * block + row] = largest(own, columns);
        keep_larger(own, columns, columns_best.data());
      }
      // Undecided keys and decided keys are each sorted longest first; a block may contain the boundary.
      const double reach =
          std::max(length(other), length(std::min(std::max(open_, other), other + columns - 1)));
      errors[index] = key_set_.product_error(length(first), reach);
      for (std::size_t column = 0; index > 0 && column < columns && other + column < open_; ++column) {
        double& constraint = rivals_[order_[other + column]];
        constraint = std::max(constraint, static_cast<double>(columns_best[column]) + errors[index]);
      }
    }
  });
  for (std::size_t row = 0; row < rows; ++row) {
    double& constraint = rivals_[order_[first + row]];
    for (std::size_t index = 0; index < tail; ++index) {
      constraint = std::max(constraint, static_cast<double>(bests[index * block + row]) + errors[index]);
    }
  }
}

double OwnDirection::margin(std::size_t place) const {
  // Removes the factor by which `length` was enlarged.
  const double length = key_set_.length(place);
  const double lead = length * length * (1.0 - 0x1p-46) - rivals_[place];
  return length > 0.0 ? (lead - std::abs(lead) * 0x1p-50) / length : -1.0;
}

}  // namespace normscope::selectability
