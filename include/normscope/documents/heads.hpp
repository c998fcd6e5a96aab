#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/audit/heads.hpp>
#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

namespace normscope::documents {

/// Parts of the document besides the bounds.
struct HeadDetails {
  bool queries = false;             ///< queries, keys and rows that attain the extremes
  bool certificates = false;        ///< certificates from which a checker proves each bound
  nlohmann::ordered_json inputs{};  ///< the inputs it was computed from; null to leave them out
};

/// The heads of a checkpoint and their bounds, schema "normscope.heads/1" (docs/schemas/heads.schema.json).
[[nodiscard]] nlohmann::ordered_json heads(const checkpoint::Checkpoint& checkpoint,
                                           const model::Model& model,
                                           const std::vector<audit::HeadReach>& bounded,
                                           const HeadDetails& details);

}  // namespace normscope::documents
