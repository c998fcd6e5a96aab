#pragma once

#include <nlohmann/json_fwd.hpp>

/// The figures of normalization on a circle in [Winsor 2022], as Vega-Lite specifications.
namespace normscope::figures {

[[nodiscard]] nlohmann::ordered_json stretched_circle();
[[nodiscard]] nlohmann::ordered_json folded_circle();
/// A heat map of x/sqrt(x² + y²), with the slices that the other two figures show.
[[nodiscard]] nlohmann::ordered_json circle_surface();

}  // namespace normscope::figures
