#pragma once

namespace normscope::models {

class Builder;

/// Which norms a state-space mixer has on the time step and on the input and output vectors of its state.
enum class StateNorms { none, without_parameters, with_gains };

/// A Mamba or Mamba 2 mixer under the current prefix, which reads the last norm and writes to the stream.
void state_space_mixer(Builder& b, StateNorms norms = StateNorms::none);

}  // namespace normscope::models
