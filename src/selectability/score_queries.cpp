#include "score_queries.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/sum.hpp>

#include "products.hpp"

namespace normscope::selectability {
namespace {

/// Queries that are scored against all constraints together.
constexpr std::size_t challengers = 128;

struct Winner {
  double score = 0.0;
  std::size_t place = 0;
};

/// The state of one query while the constraints are processed.
class Duel {
 public:
  Duel(const KeySet& key_set, const Query& query, std::size_t most)
      : key_set_(key_set), query_(query), most_(most) {
    std::vector<double> z(key_set.width());
    key_set.centred(query.place, z);
    CompensatedSum total;
    for (std::size_t i = 0; i < z.size(); ++i) total.add(query.direction[i] * z[i]);
    target_ = total.value();
  }

  /// Processes the scores of the constraints from `first` on, none of which is longer than `reach`.
  void meet(const float* scores, std::size_t count, const Constraints& constraints, std::size_t first,
            double reach) {
    // Twice the error: the target itself may be off by one such error.
    const double error =
        2.0 * key_set_.product_error(1.0 + 0x1p-40, std::max(reach, key_set_.length(query_.place)));
    for (std::size_t begin = 0; begin < count; begin += lanes) {
      const std::size_t size = std::min(lanes, count - begin);
      const double best = static_cast<double>(largest(scores + begin, size));
      if (best < bar(error)) {
        if (most_ > 0) rest_ = std::max(rest_, best + error);
        continue;
      }
      for (std::size_t i = begin; i < begin + size; ++i) {
        meet(static_cast<double>(scores[i]), constraints.place(first + i), error);
      }
    }
  }

  [[nodiscard]] ScoredQuery finish() {
    ScoredQuery result;
    if (winners_.empty()) {
      result.margin = target_ - rest_;
      for (const std::size_t place : unclear_) {
        const Bounded lead = key_set_.lead(query_.direction, query_.place, place);
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
    if (place == query_.place) return;
    if (score <= target_ + error) {
      if (score < target_ - 4.0 * error) {
        rest_ = std::max(rest_, score + error);
      } else if (winners_.empty()) {
        unclear_.push_back(place);
      }
      return;
    }
    unclear_.clear();
    const Winner winner{score, place};
    winners_.insert(std::upper_bound(winners_.begin(), winners_.end(), winner, higher), winner);
    if (winners_.size() > most_) winners_.pop_back();
  }

  const KeySet& key_set_;
  const Query& query_;
  std::size_t most_;
  double target_ = 0.0;
  double rest_ = -std::numeric_limits<double>::infinity();
  std::vector<Winner> winners_{};
  std::vector<std::size_t> unclear_{};
};

/// The next batch of queries, starting at `first`.
void run_batch(const KeySet& key_set, const Constraints& constraints, std::span<const Query> queries,
               std::size_t most, std::span<ScoredQuery> results) {
  const std::size_t width = key_set.width();
  std::vector<float> directions;
  std::vector<Duel> duels;
  for (const Query& query : queries) {
    for (const double value : query.direction) directions.push_back(static_cast<float>(value));
    duels.emplace_back(key_set, query, most);
  }
  std::vector<float> scores(challengers * block);
  for (std::size_t first = 0; first < constraints.size(); first += block) {
    const std::size_t columns = std::min(block, constraints.size() - first);
    double reach = 0.0;
    for (std::size_t i = first; i < first + columns; ++i)
      reach = std::max(reach, key_set.length(constraints.place(i)));
    multiply(directions.data(), queries.size(), constraints.values(first), columns, width, scores.data());
    for (std::size_t i = 0; i < duels.size(); ++i) {
      duels[i].meet(scores.data() + i * columns, columns, constraints, first, reach);
    }
  }
  for (std::size_t i = 0; i < duels.size(); ++i) results[i] = duels[i].finish();
}

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
  std::vector<ScoredQuery> results(queries.size());
  parallel_for((queries.size() + challengers - 1) / challengers, 1, threads,
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t first = begin * challengers;
                      first < std::min(queries.size(), end * challengers); first += challengers) {
                   const std::size_t count = std::min(challengers, queries.size() - first);
                   run_batch(key_set, constraints, queries.subspan(first, count), most,
                             std::span<ScoredQuery>(results).subspan(first, count));
                 }
               });
  return results;
}

}  // namespace normscope::selectability
