#pragma once

#include "frame/experiment.hpp"

#include "network.hpp"
#include "training.hpp"

/// The character model on Shakespeare that experiments about other norms train.
namespace normscope::lab::grouped {

inline constexpr const char* language_scale =
    "a character model of width 64 on one megabyte of text, some 0.1 to 0.3 million parameters";

/// The configuration of one arm: what the experiment adds, sizes and schedule.
[[nodiscard]] Json language_configuration(Size size, std::size_t layers, const Json& arm,
                                          const Schedule& schedule);

/// Trains the run's model: a Pre-LN GPT of its "norm" (default "layer"), with "peri" and "qk_norm".
///
/// Errors    those of `train` and `data_file`
void train_language(Run& run);

}  // namespace normscope::lab::grouped
