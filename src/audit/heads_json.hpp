#pragma once

#include <nlohmann/json.hpp>

#include <normscope/audit/heads.hpp>

namespace normscope::audit {

/// One head and what it can do, as the report and `normscope heads` say it.
[[nodiscard]] nlohmann::ordered_json head_json(const model::Head& head, const HeadReach& reach,
                                               const HeadDetails& details);

}  // namespace normscope::audit
