#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/forward/trace.hpp>

namespace normscope::documents {

/// The tokens of a text in the norms of a model, schema "normscope.token-trace/1"
/// (docs/schemas/token-trace.schema.json). `names` are those of the tokens, empty if they are not known.
[[nodiscard]] nlohmann::ordered_json token_trace(const checkpoint::Checkpoint& checkpoint,
                                                 const forward::TokenTrace& trace,
                                                 const std::vector<std::string>& names);

}  // namespace normscope::documents
