#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>
#include <normscope/ranges/ranges.hpp>

namespace normscope::documents {

/// The ranges of the numbers directly behind every norm of a model, schema "normscope.ranges/1"
/// (docs/schemas/ranges.schema.json).
[[nodiscard]] nlohmann::ordered_json ranges(const checkpoint::Checkpoint& checkpoint,
                                            const model::Model& model, const ranges::ModelRanges& found);

}  // namespace normscope::documents
