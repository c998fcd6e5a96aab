#pragma once

#include <functional>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "config.hpp"

namespace normscope::models {

/// Appends norms recognised by name and shape among the tensors that are not `described` (see `norm_at`), in
/// the order of their names: their place in the forward pass, their readers and writers are unknown. Counts
/// the norms that are not analysed, by kind.
void append_found_norms(const files::Checkpoint& checkpoint, const Config& config,
                        const std::function<bool(const files::Tensor&)>& described, Model& model);

}  // namespace normscope::models
