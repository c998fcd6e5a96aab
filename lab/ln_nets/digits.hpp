#pragma once

#include "frame/experiment.hpp"
#include "ln_nets/training.hpp"

/// Trainings of LN-Nets on MNIST as runs of experiments.
namespace normscope::lab::ln_nets {

/// A plain LN-Net of `depth` norms on the 80 leading principal components of the images, which are a fixed
/// linear map of the pixels, with an orthogonal start.
[[nodiscard]] Json deep_digits(Size size, std::size_t width, std::size_t depth, std::size_t steps);

/// Trains on the first "rows" images of the training set, or on as many principal components of them as
/// "components" says. Measures "test_accuracy", and "validation_accuracy" on its last 10,000 images.
///
/// Errors    as `train` and `data_file`
void train_on_digits(Run& run);

}  // namespace normscope::lab::ln_nets
