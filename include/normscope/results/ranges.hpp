#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/analysis/ranges.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

namespace normscope::results {

/// The ranges of the numbers directly behind every norm of a model, schema "normscope.ranges/1"
/// (docs/schemas/ranges.schema.json).
[[nodiscard]] nlohmann::ordered_json ranges(const files::Checkpoint& checkpoint, const models::Model& model,
                                            const analysis::ModelRanges& found);

}  // namespace normscope::results
