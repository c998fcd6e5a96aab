#pragma once

#include "equal_distance.hpp"

namespace normscope::heads {

/// Whether the head has a rotary embedding that rotates its keys.
[[nodiscard]] bool turns(const HeadMaps& maps);

/// Fills `most_uniform`, `sharpest`, their attaining points and proofs, and `distances` except for equal
/// distance, over all distances within the head's context, without a soft cap.
void bound_over_distances(const AttentionSides& sides, const HeadMaps& maps, const AttentionEffort& effort,
                          Attention& result);

/// Whether, without scaling, some query gives all keys the same score at every distance.
[[nodiscard]] bool uniform_without_scaling_over_distances(const AttentionSides& sides, const HeadMaps& maps);

}  // namespace normscope::heads
