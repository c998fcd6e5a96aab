#pragma once

#include <span>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>
#include <normscope/model/stated_norm.hpp>

namespace normscope::model {

/// Appends the norms that the checkpoint itself states, `all`, in their order; repeated parameters count as
/// another application. If `model` already has norms, the position of these among them is unknown. Linear
/// maps that read them directly are listed; their writers are unknown.
void append_stated_norms(const checkpoint::Checkpoint& checkpoint, std::span<const StatedNorm> all,
                         Model& model);

/// Replaces an assumed eps of a norm by the eps that one of `all` has for its gain.
void take_stated_eps(std::span<const StatedNorm> all, Model& model);

}  // namespace normscope::model
