#pragma once

#include "frame/run.hpp"

namespace normscope::lab::grouped {

/// Trains the run's vision transformer ("width", "groups", "layers", "heads", "patch") on the images of
/// CIFAR-10 that it names ("images", "test", "batch").
///
/// Errors    those of `image_data`, `data_file`, `Network` and `train`
void train_vision(Run& run);

}  // namespace normscope::lab::grouped
