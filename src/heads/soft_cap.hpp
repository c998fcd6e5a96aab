#pragma once

#include "equal_distance.hpp"

namespace normscope::heads {

/// Converts the spreads of `result` from scores s to c tanh(s/c), c = maps.soft_cap. An upper bound S becomes
/// 2c tanh(S/2c), which two scores at most S apart cannot exceed. The sharpest spread's lower bound is
/// recomputed for its own context. Any other lower bound L becomes c tanh(A/c) − c tanh((A − L)/c), the
/// smallest difference after the cap if no score exceeds A. `whole` holds the sides without projection, where
/// scores, and so A, are larger.
void bend_scores(const AttentionSides& sides, const AttentionSides* whole, const HeadMaps& maps,
                 Attention& result);

}  // namespace normscope::heads
