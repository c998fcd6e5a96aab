#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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

/// The network after its attention, for every pair of a sequence and a class in it. Without positions and
/// masks, all tokens of a class have the same state in a sequence, so it suffices to compute pairs, weighted
/// by their number of tokens.
namespace normscope::lab::majority {

/// The network of the paper's curves, and that of its figures 1a and 1b.
struct Eight {
  static constexpr std::size_t width = 8;
  static constexpr std::size_t classes = 20;
};
struct Three {
  static constexpr std::size_t width = 3;
  static constexpr std::size_t classes = 10;
};

/// Row-major; a row has the weights of one output.
template <class Size>
using Square = double[Size::width][Size::width];
template <class Size>
using Row = double[Size::width];
template <class Size>
using ClassRows = double[Size::classes][Size::width];

/// The values of the classes in a batch, or the gradient with respect to them.
///   x = residual_i + Σ_j c_j weight_ij value_j / Σ_j c_j weight_ij
///   o = x + second relu(first norm(x) + first_bias) + second_bias, logits o · embedding_k
template <class Size>
struct Tables {
  double weight[Size::classes][Size::classes];  ///< attention of a token of class i to one of class j, up to
                                                ///< a factor per row
  ClassRows<Size> value;
  ClassRows<Size> residual;
  ClassRows<Size> embedding;
  Row<Size> gain;
  Row<Size> shift;
  Square<Size> first;
  Row<Size> first_bias;
  Square<Size> second;
  Row<Size> second_bias;
};

/// Means over all tokens of a batch.
struct Outcome {
  double loss = 0.0;
  double right = 0.0;  ///< accuracy over tokens
};

/// Computes in `Real`, sixteen or eight pairs at a time; sums over a class use `Real`, sums over classes
/// double. The result is the same on every instruction set.
template <class Real, class Size>
class Pairs {
 public:
  Pairs();
  Pairs(Pairs&&) noexcept;
  Pairs& operator=(Pairs&&) noexcept;
  ~Pairs();

  /// Loss and accuracy over the sequences `rows` of `examples`, and if `gradient` is there, the loss's.
  ///
  /// Requires  rows is not empty
  ///
  /// Accuracy  central differences agree to 1e-6 in double (test: Majority.GradientIsThatOfDifferences)
  ///
  /// Cost      1e3 multiply-adds per pair with a gradient, a third of that without
  [[nodiscard]] Outcome evaluate(const Tables<Size>& tables, const Examples& examples,
                                 std::span<const std::uint32_t> rows, Tables<Size>* gradient);

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace normscope::lab::majority
