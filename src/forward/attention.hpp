#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

namespace normscope::forward {

/// Causal attention of `heads`, indices in `model.heads`, over the outputs of the norm that they read: the
/// sums of values, head after head, row-major.
///
/// Shapes    normed (tokens, width)
///
/// Errors    as `models::read_weight`; Unsupported for norms of queries or keys that are neither of a head
/// nor
///           of all heads
[[nodiscard]] std::vector<double> attended(const files::Checkpoint& checkpoint, const models::Model& model,
                                           std::span<const std::size_t> heads,
                                           MatrixView<const double> normed, unsigned threads);

}  // namespace normscope::forward
