#pragma once

#include <string>

#include "network.hpp"
#include "training.hpp"

namespace normscope::lab {

/// The README.md of a trained model: its architecture and training, its loss compared with counts of letters,
/// what its norms learned, samples, and the command that reproduces it. `words_name` is the name of the list.
[[nodiscard]] std::string model_card(const Job& job, const std::string& words_name, Network& network,
                                     const TrainingState& state);

}  // namespace normscope::lab
