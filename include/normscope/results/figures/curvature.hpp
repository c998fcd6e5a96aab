#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

#include <normscope/norm/curvature.hpp>

namespace normscope::figures {

/// The ratio of a norm's curvature in groups to that in one group, over the number of groups: mean and
/// minimum over the rows, and the proved bound, if there is one. A Vega-Lite specification with its data.
[[nodiscard]] nlohmann::ordered_json group_curvature(std::span<const norm::GroupCurvature> results);

}  // namespace normscope::figures
