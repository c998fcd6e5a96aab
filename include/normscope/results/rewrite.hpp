#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/compare.hpp>
#include <normscope/rewrite/rewrite.hpp>

namespace normscope::results {

/// The plan of a rewrite and, once it is written, its certificates (`result`, null for a plan alone): schema
/// "normscope.rewrite/1" (docs/schemas/rewrite.schema.json).
[[nodiscard]] nlohmann::ordered_json rewrite(const files::Checkpoint& checkpoint, const models::Model& model,
                                             const rewrite::Plan& plan, const rewrite::Result* result);

/// A rewrite undone, schema "normscope.undo/1" (docs/schemas/undo.schema.json).
[[nodiscard]] nlohmann::ordered_json undone(const files::Checkpoint& rewritten,
                                            const rewrite::Restoration& restoration);

/// Two checkpoints compared, schema "normscope.compare/1" (docs/schemas/compare.schema.json).
[[nodiscard]] nlohmann::ordered_json comparison(const files::Checkpoint& before,
                                                const files::Checkpoint& after,
                                                const rewrite::Comparison& comparison);

}  // namespace normscope::results
