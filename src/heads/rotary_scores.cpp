#include "rotary_scores.hpp"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <numeric>

#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::heads {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Turns {
  MatrixXd cosines;
  MatrixXd sines;
};

namespace {

/// Distances whose keys are multiplied together, so that they fit into the second-level cache.
constexpr Index distance_block = 256;

Turns turns_at(const std::vector<double>& frequencies, const std::vector<std::size_t>& distances) {
  const auto pairs = static_cast<Index>(frequencies.size());
  const auto count = static_cast<Index>(distances.size());
  Turns result{MatrixXd(pairs, count), MatrixXd(pairs, count)};
  for (Index i = 0; i < count; ++i) {
    const double t = static_cast<double>(distances[static_cast<std::size_t>(i)]);
    for (Index j = 0; j < pairs; ++j) {
      const double angle = t * frequencies[static_cast<std::size_t>(j)];
      result.cosines(j, i) = std::cos(angle);
      result.sines(j, i) = std::sin(angle);
    }
  }
  return result;
}

/// The turns of the last few sets of distances: all heads of a model ask for the same ones. At most 64 MiB
/// stay.
class RecentTurns {
 public:
  std::shared_ptr<const Turns> at(const std::vector<double>& frequencies,
                                  const std::vector<std::size_t>& distances) {
    {
      const std::lock_guard lock(mutex_);
      for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        if (entry->frequencies != frequencies || entry->distances != distances) continue;
        entries_.splice(entries_.begin(), entries_, entry);
        return entry->turns;
      }
    }
    auto made = std::make_shared<const Turns>(turns_at(frequencies, distances));
    if (made->cosines.size() > largest) return made;
    const std::lock_guard lock(mutex_);
    entries_.push_front({frequencies, distances, made});
    if (entries_.size() > most) entries_.pop_back();
    return made;
  }

 private:
  static constexpr std::size_t most = 8;
  static constexpr Index largest = Index{1} << 19;  ///< cosines

  struct Entry {
    std::vector<double> frequencies;
    std::vector<std::size_t> distances;
    std::shared_ptr<const Turns> turns;
  };

  std::mutex mutex_;
  std::list<Entry> entries_;  ///< most recently used first
};

std::shared_ptr<const Turns> recent_turns(const std::vector<double>& frequencies,
                                          const std::vector<std::size_t>& distances) {
  static RecentTurns recent;
  return recent.at(frequencies, distances);
}

}  // namespace

double RotaryScores::slack(std::size_t farthest) const {
  double fastest = 0.0;
  for (const double frequency : frequencies) fastest = std::max(fastest, std::abs(frequency));
  // An angle is the result of one product; its cosine is rounded once.
  const double angle = 4.0 * unit_roundoff * (fastest * static_cast<double>(farthest) + 4.0);
  const double queries = query_size();
  const double keys = key_size();
  const double products = 4.0 * rounding(dim() + query.cols() + key.cols()) + angle;
  return 2.0 * (1.0 + 1e-6) *
         ((queries + query_lost) * (keys + key_lost) * (1.0 + products) - queries * keys);
}

VectorXd RotaryScores::turning_constant() const {
  VectorXd result = key_constant;
  result.tail(dim() - turning()).setZero();
  return result;
}

std::vector<double> RotaryScores::in_head_order(const VectorXd& values) const {
  std::vector<double> result(static_cast<std::size_t>(values.size()));
  for (Index i = 0; i < values.size(); ++i) {
    result[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = values[i];
  }
  return result;
}

MatrixXd turned(const RotaryScores& scores, const MatrixXd& x, double t) {
  MatrixXd result = x;
  for (Index j = 0; j < scores.pairs; ++j) {
    const double angle = t * scores.frequencies[static_cast<std::size_t>(j)];
    const double cosine = std::cos(angle);
    const double sine = std::sin(angle);
    result.row(2 * j) = cosine * x.row(2 * j) - sine * x.row(2 * j + 1);
    result.row(2 * j + 1) = sine * x.row(2 * j) + cosine * x.row(2 * j + 1);
  }
  return result;
}

Sweep::Sweep(const RotaryScores& scores, std::vector<std::size_t> distances)
    : scores_(scores),
      distances_(std::move(distances)),
      constant_(scores.turning_constant()),
      turns_(recent_turns(scores.frequencies, distances_)) {}

Ranges Sweep::of(const VectorXd& query) const {
  const auto count = static_cast<Index>(distances_.size());
  const Index turning = scores_.turning();
  Ranges result{VectorXd(count), VectorXd(count)};
  MatrixXd back(scores_.dim(), std::min(distance_block, count));
  MatrixXd pulls(scores_.key.cols(), back.cols());
  // Columns in memory are rows of the transposes.
  const auto dim = static_cast<std::size_t>(scores_.dim());
  const auto inputs = static_cast<std::size_t>(scores_.key.cols());
  const Factor<double> keys(scores_.key.data(), dim, inputs, 1, dim);
  back.bottomRows(scores_.dim() - turning).colwise() = query.tail(scores_.dim() - turning).eval();
  for (Index first = 0; first < count; first += distance_block) {
    const Index here = std::min(distance_block, count - first);
    for (Index i = 0; i < here; ++i) {
      for (Index j = 0; j < scores_.pairs; ++j) {
        const double cosine = turns_->cosines(j, first + i);
        const double sine = turns_->sines(j, first + i);
        back(2 * j, i) = cosine * query[2 * j] + sine * query[2 * j + 1];
        back(2 * j + 1, i) = cosine * query[2 * j + 1] - sine * query[2 * j];
      }
    }
    const auto columns = back.leftCols(here);
    const auto rows = static_cast<std::size_t>(here);
    multiply(Factor<double>(back.data(), rows, dim, dim), keys, {pulls.data(), rows, inputs});
    result.half.segment(first, here) = pulls.leftCols(here).colwise().norm().transpose();
    result.middle.segment(first, here) = columns.transpose() * constant_;
  }
  return result;
}

std::vector<std::size_t> all_distances(std::size_t first, std::size_t end) {
  std::vector<std::size_t> result(end > first ? end - first : 0);
  std::iota(result.begin(), result.end(), first);
  return result;
}

std::vector<std::size_t> some_distances(std::size_t first, std::size_t end, std::size_t count) {
  if (end <= first || end - first <= count) return all_distances(first, end);
  // Spacing grows like a power, so that all short distances, where fast pairs matter, are included.
  std::vector<std::size_t> result;
  const double whole = static_cast<double>(end - first - 1);
  const double ratio = std::pow(whole + 1.0, 1.0 / static_cast<double>(count - 1));
  double at = 0.0;
  while (at < whole) {
    result.push_back(first + static_cast<std::size_t>(at));
    at = std::max(std::floor(at) + 1.0, (at + 1.0) * ratio - 1.0);
  }
  result.push_back(end - 1);
  return result;
}

std::vector<std::size_t> scattered_distances(std::size_t first, std::size_t end, std::size_t count) {
  std::vector<std::size_t> result = some_distances(first, end, count / 2);
  if (result.size() + first == end) return result;
  // Multiples of the golden ratio spread evenly and do not resonate with any frequency.
  double at = 0.0;
  for (std::size_t i = 0; i < count / 2; ++i) {
    at += 0.6180339887498949;
    at -= std::floor(at);
    result.push_back(first + static_cast<std::size_t>(at * static_cast<double>(end - first)));
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace normscope::heads
