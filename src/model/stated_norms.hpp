#pragma once

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

namespace normscope::model {

/// Appends the norms that the checkpoint states itself, in its order; one whose parameters come again is
/// applied again. Linear maps that read them directly are told, what writes to them is not known.
void append_stated_norms(const checkpoint::Checkpoint& checkpoint, Model& model);

/// Gives the norms whose eps is assumed the eps that the checkpoint states for their gain.
void take_stated_eps(const checkpoint::Checkpoint& checkpoint, Model& model);

}  // namespace normscope::model
