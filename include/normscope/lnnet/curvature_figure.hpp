#pragma once

#include <span>
#include <string>

#include <normscope/norm/curvature.hpp>

namespace normscope::lnnet {

/// The ratio of a norm's curvature in groups to that in one group, over the number of groups: mean and
/// minimum over the rows, and the proved bound, if there is one. A Vega-Lite specification with its data, as
/// JSON text.
[[nodiscard]] std::string curvature_figure(std::span<const norm::GroupCurvature> results);

}  // namespace normscope::lnnet
