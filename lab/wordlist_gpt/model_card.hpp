#pragma once

#include <string>

#include "network.hpp"
#include "training.hpp"

namespace normscope::lab {

/// The README.md of a trained model: what it is, how it was made, how good it is against counts of
/// letters, what its norms learned, samples, and how to make it again. `words_name` names the list.
[[nodiscard]] std::string model_card(const Job& job, const std::string& words_name, Network& network,
                                     const TrainingState& state);

}  // namespace normscope::lab
