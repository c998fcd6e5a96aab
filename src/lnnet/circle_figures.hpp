#pragma once

#include <string>

/// The post's pictures of what normalization makes of a circle, as Vega-Lite specifications.
namespace normscope::lnnet::detail {

[[nodiscard]] std::string stretch_figure();
[[nodiscard]] std::string fold_figure();
/// A heat map of x/sqrt(x² + y²), with the curves along which the other two slice it.
[[nodiscard]] std::string surface_figure();

}  // namespace normscope::lnnet::detail
