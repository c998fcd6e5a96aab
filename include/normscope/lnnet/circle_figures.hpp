#pragma once

#include <string>

/// The post's figures of normalization on a circle, as Vega-Lite specifications.
namespace normscope::lnnet {

[[nodiscard]] std::string stretched_circle_figure();
[[nodiscard]] std::string folded_circle_figure();
/// A heat map of x/sqrt(x² + y²), with the slices that the other two figures show.
[[nodiscard]] std::string circle_surface_figure();

}  // namespace normscope::lnnet
