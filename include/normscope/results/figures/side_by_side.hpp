#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/analysis/report.hpp>

namespace normscope::figures {

/// The norms of two checkpoints next to each other, in the form of `charts`: their gains on one axis, gains
/// by coordinate, and, where both have norms of the same names, the condition numbers of their images.
[[nodiscard]] nlohmann::ordered_json side_by_side_charts(const analysis::Report& before,
                                                         const analysis::Report& after);

}  // namespace normscope::figures
