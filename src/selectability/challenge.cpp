#include "challenge.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/sum.hpp>

#include "products.hpp"

namespace normscope::selectability {
namespace {

/// Queries that are scored against all rivals together.
constexpr std::size_t challengers = 128;

struct Winner {
  double score = 0.0;
  std::size_t place = 0;
};

/// The state of one query while the rivals are processed.
class Duel {
 public:
  Duel(const Cloud& cloud, const Query& query, std::size_t most) : cloud_(cloud), query_(query), most_(most) {
    std::vector<double> z(cloud.width());
    cloud.centred(query.place, z);
    CompensatedSum total;
    for (std::size_t i = 0; i < z.size(); ++i) total.add(query.direction[i] * z[i]);
    target_ = total.value();
  }

  /// Processes the scores of the rivals from `first` on, none of which is longer than `reach`.
  void meet(const float* scores, std::size_t count, const Rivals& rivals, std::size_t first, double reach) {
    // Twice the error: the target itself may be off by one such error.
    const double error =
        2.0 * cloud_.product_error(1.0 + 0x1p-40, std::max(reach, cloud_.length(query_.place)));
    for (std::size_t begin = 0; begin < count; begin += lanes) {
      const std::size_t size = std::min(lanes, count - begin);
      const double best = static_cast<double>(largest(scores + begin, size));
      if (best < bar(error)) {
        if (most_ > 0) rest_ = std::max(rest_, best + error);
        continue;
      }
      for (std::size_t i = begin; i < begin + size; ++i) {
        meet(static_cast<double>(scores[i]), rivals.place(first + i), error);
      }
    }
  }

  [[nodiscard]] Challenge finish() {
    Challenge result;
    if (winners_.empty()) {
      result.margin = target_ - rest_;
      for (const std::size_t place : unclear_) {
        const Bounded lead = cloud_.lead(query_.direction, query_.place, place);
        if (lead.low() > 0.0) {
          result.margin = std::min(result.margin, lead.low());
        } else {
          winners_.push_back({-lead.value, place});
        }
      }
    }
    std::sort(winners_.begin(), winners_.end(), higher);
    if (winners_.size() > most_) winners_.resize(most_);
    for (const Winner& winner : winners_) result.winners.push_back(winner.place);
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

  const Cloud& cloud_;
  const Query& query_;
  std::size_t most_;
  double target_ = 0.0;
  double rest_ = -std::numeric_limits<double>::infinity();
  std::vector<Winner> winners_{};
  std::vector<std::size_t> unclear_{};
};

/// The next batch of queries, starting at `first`.
void run_batch(const Cloud& cloud, const Rivals& rivals, std::span<const Query> queries, std::size_t most,
               std::span<Challenge> results) {
  const std::size_t width = cloud.width();
  std::vector<float> directions;
  std::vector<Duel> duels;
  for (const Query& query : queries) {
    for (const double value : query.direction) directions.push_back(static_cast<float>(value));
    duels.emplace_back(cloud, query, most);
  }
  std::vector<float> scores(challengers * block);
  for (std::size_t first = 0; first < rivals.size(); first += block) {
    const std::size_t columns = std::min(block, rivals.size() - first);
    double reach = 0.0;
    for (std::size_t i = first; i < first + columns; ++i)
      reach = std::max(reach, cloud.length(rivals.place(i)));
    multiply(directions.data(), queries.size(), rivals.values(first), columns, width, scores.data());
    for (std::size_t i = 0; i < duels.size(); ++i) {
      duels[i].meet(scores.data() + i * columns, columns, rivals, first, reach);
    }
  }
  for (std::size_t i = 0; i < duels.size(); ++i) results[i] = duels[i].finish();
}

}  // namespace

void Rivals::add(std::size_t place) {
  if (holds(place)) return;
  held_.resize(cloud_->size());
  held_[place] = true;
  places_.push_back(place);
  values_.insert(values_.end(), cloud_->values(place), cloud_->values(place) + cloud_->width());
}

bool Rivals::holds(std::size_t place) const { return all_ || (place < held_.size() && held_[place]); }

const float* Rivals::values(std::size_t index) const {
  return all_ ? cloud_->values(index) : values_.data() + index * cloud_->width();
}

std::vector<Challenge> challenge(const Cloud& cloud, const Rivals& rivals, std::span<const Query> queries,
                                 std::size_t most, unsigned threads) {
  std::vector<Challenge> results(queries.size());
  parallel_for((queries.size() + challengers - 1) / challengers, 1, threads,
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t first = begin * challengers;
                      first < std::min(queries.size(), end * challengers); first += challengers) {
                   const std::size_t count = std::min(challengers, queries.size() - first);
                   run_batch(cloud, rivals, queries.subspan(first, count), most,
                             std::span<Challenge>(results).subspan(first, count));
                 }
               });
  return results;
}

}  // namespace normscope::selectability
