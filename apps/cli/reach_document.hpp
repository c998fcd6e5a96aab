#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <normscope/selectability/survey.hpp>

#include "reach_head.hpp"

namespace normscope::cli {

/// The result of `reach` as described in docs/schemas/reach.schema.json; not `complete` if the search was
/// interrupted. `folder` is that of the certificates, or empty.
[[nodiscard]] nlohmann::ordered_json reach_document(const ReachHead& head,
                                                    const selectability::Survey& results, double tolerance,
                                                    const std::string& folder, bool complete);

}  // namespace normscope::cli
