#pragma once

#include "equal_distance.hpp"

namespace normscope::selectability {

/// Whether a head's keys turn at all.
[[nodiscard]] bool turns(const HeadMaps& maps);

/// Fills most_uniform, sharpest, what attains and proves them, and `distances` but for what is at equal
/// distance, over every distance that the head's contexts have; without a soft cap.
void bound_over_distances(const AttentionSides& sides, const HeadMaps& maps, const AttentionEffort& effort,
                          Attention& result);

/// Whether, without scaling, some query gives all keys one score at every distance.
[[nodiscard]] bool uniform_without_scaling_over_distances(const AttentionSides& sides, const HeadMaps& maps);

}  // namespace normscope::selectability
