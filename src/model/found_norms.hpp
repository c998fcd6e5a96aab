#pragma once

#include <functional>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

#include "config.hpp"

namespace normscope::model {

/// Appends norms recognised by name and shape among the tensors that are not `described`: one axis, and a
/// name such as "norm", "LayerNorm" or "ln_1". Their readers and writers are unknown.
void append_found_norms(const checkpoint::Checkpoint& checkpoint, const Config& config,
                        const std::function<bool(const checkpoint::Tensor&)>& described, Model& model);

}  // namespace normscope::model
