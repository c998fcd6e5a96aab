#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include <normscope/analysis/ranges.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/models/model.hpp>

namespace normscope::analysis {

/// What bounds a component's part of the stream in every context.
enum class ShareSource {
  none,      ///< nothing that is known: a mixture of experts, or a part of what a norm of the branch divides
  rows,      ///< of a table: it adds one of them
  constant,  ///< it adds the same always
  head,      ///< it averages values, each a number that is read behind a norm
  mlp,       ///< each unit is between the extremes of its activation
  norm       ///< all of its branch: what the norm of the branch's output guarantees
};
[[nodiscard]] ShareSource share_source(const forward::Component& component);

/// The table whose rows an embedding adds; null for other components.
[[nodiscard]] const models::Linear* table_of(const models::Model& model, const forward::Component& component);

/// Bounds of direction·x over everything that a component can add to the stream, x, in any context: of
/// embeddings the least and the most of a row; of a head, whose output is an average of values, the ends of a
/// number that is read behind its norm (`interval`); of an MLP the sum of what each unit can add between the
/// ends of its input, or the ends of what its own norm puts out. `typical` is not set.
///
/// Accuracy  proved, with rounding (test: ShareRange.NoContextLeavesIt)
///
/// Errors    as `models::read_weight`
///
/// Cost      two operations for each weight of the component
[[nodiscard]] std::optional<Interval> share_range(const files::Checkpoint& checkpoint,
                                                  const models::Model& model,
                                                  const forward::Component& component,
                                                  std::span<const double> direction);

}  // namespace normscope::analysis
