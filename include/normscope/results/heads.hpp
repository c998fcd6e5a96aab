#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/files/checkpoint.hpp>
#include <normscope/heads/heads.hpp>
#include <normscope/models/model.hpp>

namespace normscope::results {

/// Parts of the document besides the bounds.
struct HeadDetails {
  bool queries = false;             ///< queries, keys and rows that attain the extremes
  bool certificates = false;        ///< certificates from which a checker proves each bound
  nlohmann::ordered_json inputs{};  ///< the inputs it was computed from; null to leave them out
};

/// The heads of a checkpoint and their bounds, schema "normscope.heads/1" (docs/schemas/heads.schema.json).
[[nodiscard]] nlohmann::ordered_json heads(const files::Checkpoint& checkpoint, const models::Model& model,
                                           const std::vector<heads::HeadReach>& bounded,
                                           const HeadDetails& details);

}  // namespace normscope::results
