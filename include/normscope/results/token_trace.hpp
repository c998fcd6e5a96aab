#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/analysis/trace.hpp>
#include <normscope/files/checkpoint.hpp>

namespace normscope::results {

/// The tokens of a text in the norms of a model, schema "normscope.token-trace/1"
/// (docs/schemas/token-trace.schema.json). `names` are those of the tokens, empty if they are not known.
[[nodiscard]] nlohmann::ordered_json token_trace(const files::Checkpoint& checkpoint,
                                                 const analysis::TokenTrace& trace,
                                                 const std::vector<std::string>& names);

}  // namespace normscope::results
