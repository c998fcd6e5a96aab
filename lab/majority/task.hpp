#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The majority task: at every position of a sequence, name the class that it has most of.
namespace normscope::lab::majority {

inline constexpr std::size_t classes = 20;

/// How often a sequence has each class; all that a network without positions can see of it.
using Counts = std::array<std::uint8_t, classes>;

struct Examples {
  std::vector<Counts> counts{};
  std::vector<std::uint8_t> majority{};  ///< the class that there is most of, an entry a sequence

  [[nodiscard]] std::size_t size() const { return counts.size(); }
};

struct Task {
  std::size_t length = 50;
  std::size_t sequences = 100000;  ///< at least as many, in whole partitions
  std::size_t lead = 6;            ///< by which the majority exceeds every other class
  std::size_t sequences_each = 10;
};

struct Data {
  Examples training{};
  Examples test{};  ///< a fifth, with as large a part of every majority
};

/// Partitions of the length into at most `classes` parts, found by a depth-first search that tries sizes in
/// random order, each with several random assignments of classes. So few branches of the search are in the
/// data, and training and test share partitions, as in the released code.
///
/// Source    [Brody, Alon, Yahav 2023, section 4.1], and the authors' code
/// Errors    Argument for a task without partitions
[[nodiscard]] Data make_data(const Task& task, std::uint64_t seed);

}  // namespace normscope::lab::majority
