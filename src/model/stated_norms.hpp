#pragma once

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

namespace normscope::model {

/// Appends the norms that the checkpoint itself states, in its order; repeated parameters count as another
/// application. Linear maps that read them directly are listed; their writers are unknown.
void append_stated_norms(const checkpoint::Checkpoint& checkpoint, Model& model);

/// Replaces an assumed eps of a norm by the eps that the checkpoint states for its gain.
void take_stated_eps(const checkpoint::Checkpoint& checkpoint, Model& model);

}  // namespace normscope::model
