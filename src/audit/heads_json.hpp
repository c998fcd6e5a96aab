#pragma once

#include <nlohmann/json.hpp>

#include <normscope/audit/heads.hpp>

namespace normscope::audit {

/// One head and its bounds, as in the report and in `normscope heads`.
[[nodiscard]] nlohmann::ordered_json head_json(const model::Head& head, const HeadReach& reach,
                                               const HeadDetails& details);

}  // namespace normscope::audit
