#include "task.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

namespace normscope::lab::majority {
namespace {

constexpr std::size_t test_part = 5;

template <class T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

/// Partitions into ascending parts whose last exceeds the one before by at least the lead.
class Partitions {
 public:
  Partitions(const Task& task, std::size_t wanted, Random& random)
      : task_(task), wanted_(wanted), random_(random) {
    extend(1, task.length);
  }

  [[nodiscard]] const std::vector<std::vector<std::size_t>>& found() const { return found_; }

 private:
  void extend(std::size_t least, std::size_t rest) {
    if (parts_.size() + 1 == task_.classes) {
      close(rest);
      return;
    }
    std::vector<std::size_t> sizes(rest - least + 1);
    std::iota(sizes.begin(), sizes.end(), least);
    shuffle(sizes, random_);
    for (const std::size_t size : sizes) {
      if (found_.size() == wanted_) return;
      if (size == rest) {
        close(rest);
      } else if (rest - size >= size) {
        parts_.push_back(size);
        extend(size, rest - size);
        parts_.pop_back();
      }
    }
  }

  void close(std::size_t last) {
    if (found_.size() == wanted_ || parts_.empty() || last < parts_.back() + task_.lead) return;
    found_.push_back(parts_);
    found_.back().push_back(last);
  }

  const Task& task_;
  std::size_t wanted_;
  Random& random_;
  std::vector<std::size_t> parts_{};
  std::vector<std::vector<std::size_t>> found_{};
};

void append(Examples& examples, const Examples& from, std::size_t index) {
  examples.counts.push_back(from.counts[index]);
  examples.majority.push_back(from.majority[index]);
}

/// Every fifth sequence, ordered by majority, is for the test.
Data split(const Examples& all, Random& random) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  shuffle(order, random);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return all.majority[a] < all.majority[b]; });
  Data data;
  for (std::size_t i = 0; i < order.size(); ++i) {
    append(i % test_part == 0 ? data.test : data.training, all, order[i]);
  }
  return data;
}

}  // namespace

Data make_data(const Task& task, std::uint64_t seed) {
  if (task.classes < 2 || task.classes > most_classes) {
    throw Error(ErrorCode::Argument,
                fmt::format("majority task: {} classes, expected 2 to {}", task.classes, most_classes));
  }
  if (task.length == 0 || task.length > std::numeric_limits<std::uint8_t>::max() ||
      task.sequences_each == 0) {
    throw Error(ErrorCode::Argument,
                fmt::format("majority task: length {}, {} sequences a partition, expected 1 to 255 and some",
                            task.length, task.sequences_each));
  }
  Random random(seed);
  const Partitions partitions(task, task.sequences / task.sequences_each + 1, random);
  if (partitions.found().empty()) {
    throw Error(ErrorCode::Argument, fmt::format("majority task: no partition of {} has a majority by {}",
                                                 task.length, task.lead));
  }
  Examples all;
  std::vector<std::uint8_t> names(task.classes);
  std::iota(names.begin(), names.end(), std::uint8_t{0});
  for (const std::vector<std::size_t>& parts : partitions.found()) {
    for (std::size_t copy = 0; copy < task.sequences_each; ++copy) {
      shuffle(names, random);
      Counts counts{};
      for (std::size_t i = 0; i < parts.size(); ++i) counts[names[i]] = static_cast<std::uint8_t>(parts[i]);
      all.counts.push_back(counts);
      all.majority.push_back(names[parts.size() - 1]);
    }
  }
  return split(all, random);
}

}  // namespace normscope::lab::majority
