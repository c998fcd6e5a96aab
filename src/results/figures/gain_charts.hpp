#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "chart_parts.hpp"

namespace normscope::figures {

/// Figures of the gains of a report: their distributions, coordinates by norms, and the features that stand
/// out.
[[nodiscard]] Json gain_charts(const Report& report);

/// The axis of gains that several figures share.
struct GainAxis {
  int typical = 0;  ///< bin of the typical gain; those too far from it are drawn at the axis' ends
  double low = 0.5, high = 2.0;
};

[[nodiscard]] GainAxis gain_axis(std::initializer_list<const Report*> reports);

/// The gains of all norms of a report in one figure, which says how to read it if it `explains`; empty
/// without gains.
[[nodiscard]] std::optional<Json> ridges_of_all(const Report& report, const std::string& id,
                                                const GainAxis& axis, bool explains);

/// Gains by coordinate and norm; empty without gains.
[[nodiscard]] std::optional<Json> map_of_all(const Report& report, const char* id, const char* question);

}  // namespace normscope::figures
