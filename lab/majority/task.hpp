#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The majority task: at every position of a sequence, name the most frequent class of the sequence.
namespace normscope::lab::majority {

inline constexpr std::size_t most_classes = 20;

/// The count of each class per sequence, which is all that a network without positions depends on; 0 for
/// classes that a task does not have.
using Counts = std::array<std::uint8_t, most_classes>;

struct Examples {
  std::vector<Counts> counts{};
  std::vector<std::uint8_t> majority{};  ///< the most frequent class, one entry per sequence

  [[nodiscard]] std::size_t size() const { return counts.size(); }
};

struct Task {
  std::size_t classes = most_classes;
  std::size_t length = 50;
  std::size_t sequences = 100000;  ///< at least this many, in whole partitions
  std::size_t lead = 6;            ///< by which the majority exceeds every other class
  std::size_t sequences_each = 10;
};

struct Data {
  Examples training{};
  Examples test{};  ///< a fifth, with the same fraction of every majority
};

/// Partitions of the length into at most as many parts as classes, found by a depth-first search that tries
/// sizes in random order, each with several random assignments of classes. The data contain few branches of
/// the search, and training and test share partitions, as in the released code.
///
/// Source    [Brody, Alon, Yahav 2023, section 4.1], and the authors' code
///
/// Errors    Argument for a task without partitions
[[nodiscard]] Data make_data(const Task& task, std::uint64_t seed);

}  // namespace normscope::lab::majority
