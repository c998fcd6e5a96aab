#pragma once

#include <nlohmann/json.hpp>

#include <normscope/documents/heads.hpp>

namespace normscope::documents {

/// One head and its bounds, as in the report and in `normscope heads`.
[[nodiscard]] nlohmann::ordered_json head_json(const model::Head& head, const audit::HeadReach& reach,
                                               const HeadDetails& details);

}  // namespace normscope::documents
