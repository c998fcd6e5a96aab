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

namespace {

/// Distances whose keys are multiplied together, so that they fit into the second-level cache.
constexpr Index distance_block = 256;

Turns computed_turns(const std::vector<double>& frequencies, const std::vector<std::size_t>& distances) {
  const auto pairs = static_cast<Index>(frequencies.size());
  const auto count = static_cast<Index>(distances.size());
  Turns result{MatrixXd(count, pairs), MatrixXd(count, pairs)};
  for (Index j = 0; j < pairs; ++j) {
    const double frequency = frequencies[static_cast<std::size_t>(j)];
    for (Index i = 0; i < count; ++i) {
      const double angle = static_cast<double>(distances[static_cast<std::size_t>(i)]) * frequency;
      result.cosines(i, j) = std::cos(angle);
      result.sines(i, j) = std::sin(angle);
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
    auto made = std::make_shared<const Turns>(computed_turns(frequencies, distances));
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

Turns turns_at(const RotaryScores& scores, const std::vector<std::size_t>& distances) {
  return computed_turns(scores.frequencies, distances);
}

std::shared_ptr<const Turns> shared_turns_at(const RotaryScores& scores,
                                             const std::vector<std::size_t>& distances) {
  static RecentTurns recent;
  return recent.at(scores.frequencies, distances);
}

void turn_columns(const Turns& turns, bool back, MatrixXd& x) {
  const double sign = back ? -1.0 : 1.0;
  for (Index i = 0; i < x.cols(); ++i) {
    for (Index j = 0; j < turns.cosines.cols(); ++j) {
      const double cosine = turns.cosines(i, j);
      const double sine = sign * turns.sines(i, j);
      const double first = x(2 * j, i);
      const double second = x(2 * j + 1, i);
      x(2 * j, i) = cosine * first - sine * second;
      x(2 * j + 1, i) = sine * first + cosine * second;
    }
  }
}

Sweep::Sweep(const RotaryScores& scores, std::vector<std::size_t> distances)
    : scores_(scores),
      distances_(std::move(distances)),
      constant_(scores.turning_constant()),
      turns_(shared_turns_at(scores, distances_)) {}

template <typename T>
Ranges Sweep::computed(const VectorXd& query) const {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  const auto count = static_cast<Index>(distances_.size());
  const Index rest = scores_.dim() - scores_.turning();
  Ranges result{VectorXd(count), VectorXd(count)};
  // One row a distance, R_tᵀ q.
  Matrix back(std::min(distance_block, count), scores_.dim());
  Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> pulls(back.rows(), scores_.key.cols());
  const Matrix key = scores_.key.cast<T>();
  const auto dim = static_cast<std::size_t>(scores_.dim());
  const auto inputs = static_cast<std::size_t>(scores_.key.cols());
  const Factor<T> keys(key.data(), dim, inputs, 1, dim);
  for (Index first = 0; first < count; first += distance_block) {
    const Index here = std::min(distance_block, count - first);
    for (Index j = 0; j < scores_.pairs; ++j) {
      const auto cosines = turns_->cosines.col(j).segment(first, here);
      const auto sines = turns_->sines.col(j).segment(first, here);
      back.col(2 * j).head(here) = (query[2 * j] * cosines + query[2 * j + 1] * sines).template cast<T>();
      back.col(2 * j + 1).head(here) = (query[2 * j + 1] * cosines - query[2 * j] * sines).template cast<T>();
    }
    back.rightCols(rest).rowwise() = query.tail(rest).transpose().template cast<T>();
    const auto rows = static_cast<std::size_t>(here);
    multiply(Factor<T>(back.data(), rows, dim, 1, static_cast<std::size_t>(back.rows())), keys,
             MatrixView<T>(pulls.data(), rows, inputs));
    result.half.segment(first, here) = pulls.topRows(here).rowwise().norm().template cast<double>();
    result.middle.segment(first, here) =
        (back.topRows(here) * constant_.template cast<T>()).template cast<double>();
  }
  return result;
}

Ranges Sweep::of(const VectorXd& query) const { return computed<double>(query); }

Ranges Sweep::near(const VectorXd& query) const {
  // Maps of any size become numbers that float32 holds.
  const double size = query.norm();
  const double keys = scores_.key.norm() + constant_.norm();
  if (!(size * keys > 1e-15 && size * keys < 1e18 && size < 1e15 && keys < 1e15)) return of(query);
  return computed<float>(query);
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
