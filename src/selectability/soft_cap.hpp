#pragma once

#include "equal_distance.hpp"

namespace normscope::selectability {

/// Turns the spreads of `result` from scores s into those of c tanh(s/c), c = maps.soft_cap: an upper end S
/// becomes 2c tanh(S/2c), which no two scores S apart exceed; the sharpest's lower end what its own context
/// attains; every other lower end L what scores of that size differ by at least,
/// c tanh(A/c) − c tanh((A − L)/c) where none is beyond A. `whole` are the sides with every Π left out, where
/// there is one: scores are larger there, and A with them.
void bend_scores(const AttentionSides& sides, const AttentionSides* whole, const HeadMaps& maps,
                 Attention& result);

}  // namespace normscope::selectability
