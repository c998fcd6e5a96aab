#pragma once

#include <cstddef>
#include <vector>

#include "decide_tokens.hpp"

namespace normscope::selectability {

/// What a few steps found about a token.
struct Ascent {
  Outcome outcome{};  ///< yes with its proofs, or undecided
  /// If undecided: the tokens that were in its way, from which `decide_tokens` continues.
  std::vector<std::size_t> constraints{};
};

/// Tries to decide each token by a few steps of first order towards its largest lead. A step moves the
/// weights of the dual problem, min |Σ λ (A_i − A_j)| + Σ λ (a_i − a_j), from all tokens alike, where the
/// point is the token's own direction, towards those with the highest logits at the current point, by exact
/// line search. A step costs one product of all points with all tokens, and what else it does is linear in
/// the width. The first two steps look at the front alone.
///
/// `runners_up`: per token asked, the one with the highest other logit at its own direction.
///
/// Source    [Frank, Wolfe 1956]
[[nodiscard]] std::vector<Ascent> ascend(const LeadOracle& oracle, const std::vector<std::size_t>& tokens,
                                         const std::vector<std::size_t>& runners_up, const Front& front,
                                         const ReachOptions& options);

}  // namespace normscope::selectability
