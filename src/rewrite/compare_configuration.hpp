#pragma once

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/compare.hpp>

namespace normscope::rewrite {

/// Compares what two models compute between their tensors, by their descriptions and configurations; fills
/// `configuration`, `computations` and `not_compared`.
///
/// Requires  the norms are compared already
void compare_configurations(const files::Checkpoint& old_file, const models::Model& old_model,
                            const files::Checkpoint& new_file, const models::Model& new_model,
                            Comparison& result);

}  // namespace normscope::rewrite
