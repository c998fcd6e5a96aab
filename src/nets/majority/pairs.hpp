#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <normscope/nets/majority.hpp>

/// The network after its attention, for every pair of a sequence and a class in it. Without positions and
/// masks, all tokens of a class have the same state in a sequence, so it suffices to compute pairs, weighted
/// by their number of tokens.
namespace normscope::nets::majority {

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

}  // namespace normscope::nets::majority
