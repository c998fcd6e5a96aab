#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "task.hpp"

/// The network behind its attention, for every pair of a sequence and a class in it. Without positions and
/// masks all tokens of a class have one state in a sequence, so that pairs, weighted by how many tokens they
/// stand for, are all there is to compute.
namespace normscope::lab::majority {

inline constexpr std::size_t width = 8;

/// Row-major; a row is what comes out.
using Square = double[width][width];
using Row = double[width];
using ClassRows = double[classes][width];

/// What the classes are to a batch, or the gradient by it.
///   x = residual_i + Σ_j c_j weight_ij value_j / Σ_j c_j weight_ij
///   o = x + second relu(first norm(x) + first_bias) + second_bias, logits o · embedding_k
struct Tables {
  double weight[classes][classes];  ///< what a token of class i pays to one of class j, up to a factor a row
  ClassRows value;
  ClassRows residual;
  ClassRows embedding;
  Row gain;
  Row shift;
  Square first;
  Row first_bias;
  Square second;
  Row second_bias;
};

/// Means over all tokens of a batch.
struct Outcome {
  double loss = 0.0;
  double right = 0.0;  ///< share of tokens at which the majority is named
};

/// Computes in `Real`, sixteen or eight pairs abreast; sums over a class are taken in it, sums of classes in
/// double. The answer is the same under every instruction set.
template <class Real>
class Pairs {
 public:
  Pairs();
  Pairs(Pairs&&) noexcept;
  Pairs& operator=(Pairs&&) noexcept;
  ~Pairs();

  /// Loss and accuracy over the sequences `rows` of `examples`, and if `gradient` is there, the loss's.
  /// Requires  rows is not empty
  /// Accuracy  central differences agree to 1e-6 in double (test: Majority.GradientIsThatOfDifferences)
  /// Cost      1e3 multiply-adds a pair with a gradient, a third without
  [[nodiscard]] Outcome evaluate(const Tables& tables, const Examples& examples,
                                 std::span<const std::uint32_t> rows, Tables* gradient);

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace normscope::lab::majority
