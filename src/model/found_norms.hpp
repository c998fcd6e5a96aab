#pragma once

#include <functional>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

#include "config.hpp"

namespace normscope::model {

/// Appends the norms that names and shapes give away among the tensors that are not `described`:
/// one axis, a name such as "norm", "LayerNorm" or "ln_1". Who reads and writes them is not known.
void append_found_norms(const checkpoint::Checkpoint& checkpoint, const Config& config,
                        const std::function<bool(const checkpoint::Tensor&)>& described, Model& model);

}  // namespace normscope::model
