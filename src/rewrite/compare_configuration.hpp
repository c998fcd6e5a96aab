#pragma once

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>
#include <normscope/rewrite/compare.hpp>

namespace normscope::rewrite {

/// Compares what two models compute between their tensors, by their descriptions and configurations; fills
/// `configuration`, `computations` and `not_compared`.
///
/// Requires  the norms are compared already
void compare_configurations(const checkpoint::Checkpoint& old_file, const model::Model& old_model,
                            const checkpoint::Checkpoint& new_file, const model::Model& new_model,
                            Comparison& result);

}  // namespace normscope::rewrite
