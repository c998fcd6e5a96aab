#pragma once

#include <optional>
#include <string>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/progress.hpp>
#include <normscope/model/model.hpp>
#include <normscope/selectability/attention.hpp>

/// What every attention head of a checkpoint can do in any context.
namespace normscope::audit {

/// Of one head: its extremes, or why there are none.
struct HeadReach {
  std::optional<selectability::Attention> attention{};
  std::string refused{};     ///< empty where `attention` is there
  std::string query_norm{};  ///< name of the norm of their own that queries go through, or empty
  std::string key_norm{};
};

/// The extremes of each of `model.heads`, in their order. Heads whose queries or keys are not known to be
/// linear in the output of one norm, but for norms of their own, are refused, with the reason. Rotary
/// embeddings stand at distance 0.
///
/// Errors    as `model::read_weight`; Cancelled
/// Cost      as `selectability::attention`, a head; `threads` heads are in memory at a time
[[nodiscard]] std::vector<HeadReach> reach_of_heads(const checkpoint::Checkpoint& checkpoint,
                                                    const model::Model& model, unsigned threads = 0,
                                                    const Progress& progress = {});

/// The document, schema "normscope.heads/1" (docs/schemas/heads.schema.json); with the queries that attain
/// the extremes where `queries` is set.
[[nodiscard]] std::string heads_json(const checkpoint::Checkpoint& checkpoint, const model::Model& model,
                                     const std::vector<HeadReach>& heads, bool queries);

}  // namespace normscope::audit
