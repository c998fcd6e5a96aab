#pragma once

#include <cstddef>
#include <vector>

#include <normscope/selectability/probability.hpp>
#include <normscope/selectability/reach.hpp>

namespace normscope::selectability {

/// What is known of a whole vocabulary: each token's answer, and the numbers at its edge.
struct Survey {
  std::vector<TokenReach> tokens{};
  std::vector<Probability> probabilities{};
  std::vector<std::size_t> refined{};  ///< whose probabilities were worked out, not read off the leads
  std::vector<bool> sharp{};           ///< whose largest lead was worked out

  /// Tokens decided with this answer, in order.
  [[nodiscard]] std::vector<std::size_t> with(convex::Answer answer) const;
  /// Up to `most` reachable tokens with the smallest largest lead, the smallest first; as far as it was
  /// worked out.
  [[nodiscard]] std::vector<std::size_t> nearest(std::size_t most) const;
  /// Up to `most` tokens with the smallest bound on their probability, the smallest first.
  [[nodiscard]] std::vector<std::size_t> least_probable(std::size_t most) const;
  /// Tokens that cannot win whatever the length of the hidden state.
  [[nodiscard]] std::size_t unargmaxable() const;
};

/// Which largest probabilities `finish` works out: none but those asked for, the extreme ones (all in a small
/// vocabulary), or all.
enum class Probabilities { quick, extremes, full };

/// The edge of a vocabulary that `decide` is done with: the largest leads of the tokens that lead least, and
/// the largest probabilities wanted. With a survey half done, `bound_by_leads` fills the rest.
/// Errors    Cancelled
/// Cost      tokens · width a round and token worked out
void finish(const Logits& logits, Survey& survey, Probabilities wanted, const std::vector<std::size_t>& asked,
            const ReachOptions& options);

/// Bounds every probability by its lead alone.
void bound_by_leads(Survey& survey);

}  // namespace normscope::selectability
