#pragma once

#include <span>
#include <string>

#include <normscope/norm/curvature.hpp>

namespace normscope::lnnet {

/// How many times as curved a norm is in groups than in one, over the number of groups: the mean and the
/// least over the rows, and the bound that is proved, where one is. A Vega-Lite specification that holds
/// its data: JSON text.
[[nodiscard]] std::string curvature_figure(std::span<const norm::GroupCurvature> results);

}  // namespace normscope::lnnet
