#include "search.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

#include "float_scores.hpp"

namespace normscope::selectability {
namespace {

/// A block of constraints, none of which is longer than `reach`.
struct ConstraintBlock {
  const Constraints& constraints;
  std::size_t first;
  std::size_t count;
  double reach;
};

struct ConstraintRows {
  const KeySet& key_set;
  const Constraints& constraints;

  [[nodiscard]] std::size_t size() const { return constraints.size(); }
  [[nodiscard]] std::size_t width() const { return key_set.width(); }
  [[nodiscard]] const float* values(std::size_t index) const { return constraints.values(index); }
  [[nodiscard]] ConstraintBlock block_at(std::size_t first, std::size_t count) const {
    double reach = 0.0;
    for (std::size_t i = first; i < first + count; ++i) {
      reach = std::max(reach, key_set.length(constraints.place(i)));
    }
    return {constraints, first, count, reach};
  }
};

struct Winner {
  double score = 0.0;
  std::size_t place = 0;
};

/// What is known of one query while the constraints are processed.
class QueryState {
 public:
  QueryState(const KeySet& key_set, const Query& query, std::size_t most)
      : key_set_(&key_set), query_(&query), most_(most) {
    std::vector<double> z(key_set.width());
    key_set.centred(query.place, z);
    CompensatedSum total;
    for (std::size_t i = 0; i < z.size(); ++i) total.add(query.direction[i] * z[i]);
    target_ = total.value();
  }

  void meet(const float* scores, const ConstraintBlock& met) {
    // Twice the error: the target itself may be off by one such error.
    const double error =
        2.0 * key_set_->product_error(1.0 + 0x1p-40, std::max(met.reach, key_set_->length(query_->place)));
    visit_high(
        scores, met.count, [&] { return bar(error); },
        [&](float best) {
          if (most_ > 0) rest_ = std::max(rest_, static_cast<double>(best) + error);
        },
        [&](std::size_t i) {
          meet(static_cast<double>(scores[i]), met.constraints.place(met.first + i), error);
        });
  }

  void merge(QueryState&& other) {
    rest_ = std::max(rest_, other.rest_);
    for (const Winner& winner : other.winners_) insert(winner);
    unclear_.insert(unclear_.end(), other.unclear_.begin(), other.unclear_.end());
  }

  [[nodiscard]] ScoredQuery finish() {
    ScoredQuery result;
    if (winners_.empty()) {
      result.margin = target_ - rest_;
      for (const std::size_t place : unclear_) {
        const Bounded lead = key_set_->lead(query_->direction, query_->place, place);
        if (lead.low() > 0.0) {
          result.margin = std::min(result.margin, lead.low());
        } else {
          winners_.push_back({-lead.value, place});
        }
      }
    }
    std::sort(winners_.begin(), winners_.end(), higher);
    if (winners_.size() > most_) winners_.resize(most_);
    for (const Winner& winner : winners_) result.violated.push_back(winner.place);
    return result;
  }

 private:
  static bool higher(const Winner& a, const Winner& b) {
    return a.score > b.score || (a.score == b.score && a.place < b.place);
  }

  /// Scores below this cannot win.
  [[nodiscard]] double bar(double error) const {
    return winners_.size() < most_ ? target_ - 4.0 * error : winners_.back().score;
  }

  void meet(double score, std::size_t place, double error) {
    if (place == query_->place) return;
    if (score <= target_ + error) {
      if (score < target_ - 4.0 * error) {
        rest_ = std::max(rest_, score + error);
      } else if (winners_.empty()) {
        unclear_.push_back(place);
      }
      return;
    }
    insert({score, place});
  }

  void insert(const Winner& winner) {
    winners_.insert(std::upper_bound(winners_.begin(), winners_.end(), winner, higher), winner);
    if (winners_.size() > most_) winners_.pop_back();
  }

  const KeySet* key_set_;
  const Query* query_;
  std::size_t most_;
  double target_ = 0.0;
  double rest_ = -std::numeric_limits<double>::infinity();
  std::vector<Winner> winners_{};
  std::vector<std::size_t> unclear_{};
};

}  // namespace

void Constraints::add(std::size_t place) {
  if (holds(place)) return;
  held_.resize(key_set_->size());
  held_[place] = true;
  places_.push_back(place);
  values_.insert(values_.end(), key_set_->values(place), key_set_->values(place) + key_set_->width());
}

bool Constraints::holds(std::size_t place) const { return all_ || (place < held_.size() && held_[place]); }

const float* Constraints::values(std::size_t index) const {
  return all_ ? key_set_->values(index) : values_.data() + index * key_set_->width();
}

std::vector<ScoredQuery> score_queries(const KeySet& key_set, const Constraints& constraints,
                                       std::span<const Query> queries, std::size_t most, unsigned threads) {
  std::vector<float> directions;
  std::vector<QueryState> states;
  for (const Query& query : queries) {
    for (const double value : query.direction) directions.push_back(static_cast<float>(value));
    states.emplace_back(key_set, query, most);
  }
  scan(directions, ConstraintRows{key_set, constraints}, threads, states);
  std::vector<ScoredQuery> results(queries.size());
  parallel_for(queries.size(), 16, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) results[i] = states[i].finish();
  });
  return results;
}

}  // namespace normscope::selectability
