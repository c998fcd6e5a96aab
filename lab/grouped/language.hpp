#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "frame/experiment.hpp"

#include "network.hpp"
#include "training.hpp"

/// The character model on Shakespeare that experiments about other norms train.
namespace normscope::lab::grouped {

/// Its size beside the paper's, which is `factor` times as large.
[[nodiscard]] Scale language_scale(std::string_view paper, double factor);

/// What could refute claims about published language models.
inline constexpr std::string_view large_language_model = "a large language model";

/// Their schedule: of the full size `steps`, measured every `measure_every`; of the quick one eight.
[[nodiscard]] Schedule language_schedule(Size size, std::uint64_t steps, std::uint64_t measure_every);

/// One configuration an arm: the arm's own settings with common sizes and the schedule; three seeds, one if
/// quick.
[[nodiscard]] Plan language_plan(Size size, std::size_t layers, const std::vector<Json>& arms,
                                 const Schedule& schedule);

/// Trains the run's model, a GPT with norms before its sublayers. The configuration may have "norm" (default
/// "layer"), "groups", "peri", "qk_norm", "embedding_scalar", "alpha_attention" and "alpha_other" (`Shape`),
/// and what `train` reads.
///
/// Errors    those of `train`, `data_file`, `Network` and `norm_kind`
void train_language(Run& run);

}  // namespace normscope::lab::grouped
