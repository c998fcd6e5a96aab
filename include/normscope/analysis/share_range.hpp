#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include <normscope/analysis/ranges.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/models/model.hpp>

namespace normscope::analysis {

/// Bounds of direction·x over everything that a component can add to the stream, x, in any context: of
/// embeddings the least and the most of a row; of a head, whose output is an average of values, the ends of a
/// number that is read behind its norm (`interval`); of an MLP the sum of what each unit can add between the
/// ends of its input. `typical` is not set. None for mixtures of experts, and behind a norm of the branch.
///
/// Accuracy  proved, with rounding (test: ShareRange.NoContextLeavesIt)
///
/// Errors    as `models::read_weight`
///
/// Cost      two operations for each weight of the component
[[nodiscard]] std::optional<Interval> share_range(const files::Checkpoint& checkpoint,
                                                  const models::Model& model, const forward::Decoder& decoder,
                                                  std::size_t component, std::span<const double> direction);

}  // namespace normscope::analysis
