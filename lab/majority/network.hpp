#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "task.hpp"

namespace normscope::lab::majority {

/// The transformation of tokens before attention: the projection orthogonal to all-ones if `projects`, then
/// scaling to a length whose square this is, unless it is 0. `by_deviation` divides by the length of the
/// projection in either case: without `projects` and at a squared length of the width, x / sigma.
struct InputNorm {
  bool projects = true;
  double squared_length = 8.0;
  bool by_deviation = false;
};

/// One block of a transformer encoder with a head: x = e + W_o attention(norm(e)) + b_o, then
/// x + second relu(first LN(x) + …) + …, logits by the embedding's own rows; eps = 0.
/// Parameters are one vector, in the order of `Layout`.
template <class Size>
struct Layout {
  static constexpr std::size_t square = Size::width * Size::width;
  static constexpr std::size_t embedding = 0;
  static constexpr std::size_t query = embedding + Size::classes * Size::width;
  static constexpr std::size_t key = query + square;
  static constexpr std::size_t value = key + square;
  static constexpr std::size_t out = value + square;
  static constexpr std::size_t out_bias = out + square;
  static constexpr std::size_t first = out_bias + Size::width;
  static constexpr std::size_t first_bias = first + square;
  static constexpr std::size_t second = first_bias + Size::width;
  static constexpr std::size_t second_bias = second + square;
  static constexpr std::size_t gain = second_bias + Size::width;
  static constexpr std::size_t shift = gain + Size::width;
  static constexpr std::size_t count = shift + Size::width;
};
static_assert(Layout<Eight>::count == 584, "the paper's number of parameters");

/// PyTorch's initial values for such a block, drawn from our own numbers.
template <class Size>
[[nodiscard]] std::vector<double> initial_parameters(std::uint64_t seed);

/// The attention-relevant state of the classes, which suffices because equal tokens have equal keys.
template <class Size>
struct AttentionTables {
  ClassRows<Size> key;    ///< output of the norm
  ClassRows<Size> query;  ///< effective, norm(e) W_qᵀ W_k / sqrt(width), for direct products with keys
  double score[Size::classes][Size::classes];
};

template <class Size>
[[nodiscard]] AttentionTables<Size> attention_tables(const InputNorm& norm,
                                                     std::span<const double> parameters);

template <class Real, class Size>
class Network {
 public:
  explicit Network(const InputNorm& norm) : norm_(norm) {}

  /// Loss on the sequences `rows` of `examples`; fills `gradient` unless it is empty.
  ///
  /// Shapes    parameters (Layout::count), gradient (as many or 0)
  ///
  /// Accuracy  as `Pairs::evaluate`; the loss equals the token-by-token loss to 1e-12 in double (test:
  ///           Majority.LossIsThatOfEveryToken)
  Outcome evaluate(std::span<const double> parameters, const Examples& examples,
                   std::span<const std::uint32_t> rows, std::span<double> gradient = {});

 private:
  InputNorm norm_;
  Pairs<Real, Size> pairs_{};
};

}  // namespace normscope::lab::majority
