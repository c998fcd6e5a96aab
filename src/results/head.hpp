#pragma once

#include <nlohmann/json.hpp>

#include <normscope/results/documents.hpp>

namespace normscope::results {

/// One head and its bounds, as in the report and in `normscope heads`.
[[nodiscard]] nlohmann::ordered_json head_json(const models::Head& head, const heads::HeadReach& reach,
                                               const HeadDetails& details);

}  // namespace normscope::results
