#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/rewrite/compare.hpp>

namespace normscope::figures {

/// Differences of the gains, biases and composites of two checkpoints, norm by norm, in the form of `charts`.
/// Differences of 0 are left out, because the axis is logarithmic.
[[nodiscard]] nlohmann::ordered_json comparison_charts(const rewrite::Comparison& comparison);

}  // namespace normscope::figures
