#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/rewrite/compare.hpp>

namespace normscope::figures {

/// How far gains, biases and composites of two checkpoints are apart, norm by norm, in the form of `charts`.
/// Changes of 0 have no place on a logarithmic axis and are left out.
[[nodiscard]] nlohmann::ordered_json comparison_charts(const rewrite::Comparison& comparison);

}  // namespace normscope::figures
