#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pairs.hpp"

namespace normscope::lab::majority {

/// The transformation of tokens before attention: the projection orthogonal to all-ones if `projects`, then
/// scaling to a length whose square this is, unless it is 0. `by_deviation` divides by the length of the
/// projection in either case: without `projects` and at squared length `width`, x / sigma.
struct InputNorm {
  bool projects = true;
  double squared_length = width;
  bool by_deviation = false;
};

/// One block of a transformer encoder with a head: x = e + W_o attention(norm(e)) + b_o, then
/// x + second relu(first LN(x) + …) + …, logits by the embedding's own rows; eps = 0.
/// Parameters are one vector, in the order of `layout`.
inline constexpr std::size_t parameter_count = 584;

namespace layout {
inline constexpr std::size_t embedding = 0;
inline constexpr std::size_t query = embedding + classes * width;
inline constexpr std::size_t key = query + width * width;
inline constexpr std::size_t value = key + width * width;
inline constexpr std::size_t out = value + width * width;
inline constexpr std::size_t out_bias = out + width * width;
inline constexpr std::size_t first = out_bias + width;
inline constexpr std::size_t first_bias = first + width * width;
inline constexpr std::size_t second = first_bias + width;
inline constexpr std::size_t second_bias = second + width * width;
inline constexpr std::size_t gain = second_bias + width;
inline constexpr std::size_t shift = gain + width;
static_assert(shift + width == parameter_count);
}  // namespace layout

/// PyTorch's initial values for such a block, drawn from our own numbers.
[[nodiscard]] std::vector<double> initial_parameters(std::uint64_t seed);

/// The attention-relevant state of the classes, which suffices because equal tokens have equal keys.
struct AttentionTables {
  double key[classes][width];  ///< output of the norm
  double query[classes]
              [width];  ///< effective query, norm(e) W_qᵀ W_k / sqrt(width), for direct products with keys
  double score[classes][classes];
};

[[nodiscard]] AttentionTables attention_tables(const InputNorm& norm, std::span<const double> parameters);

template <class Real>
class Network {
 public:
  explicit Network(const InputNorm& norm) : norm_(norm) {}

  /// Loss on the sequences `rows` of `examples`; fills `gradient` unless it is empty.
  ///
  /// Shapes    parameters (584), gradient (584 or 0)
  ///
  /// Accuracy  as `Pairs::evaluate`; the loss equals the token-by-token loss to 1e-12 in double (test:
  ///           Majority.LossIsThatOfEveryToken)
  Outcome evaluate(std::span<const double> parameters, const Examples& examples,
                   std::span<const std::uint32_t> rows, std::span<double> gradient = {});

 private:
  InputNorm norm_;
  Pairs<Real> pairs_{};
};

}  // namespace normscope::lab::majority
