#pragma once

#include "chart_parts.hpp"

namespace normscope::figures {

/// Figures of the gains of a report: their distributions, coordinates by norms, and the features that stand
/// out.
[[nodiscard]] Json gain_charts(const Report& report);

}  // namespace normscope::figures
