#pragma once

#include <span>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::selectability {

/// Attention weights of a query on each key, the softmax of its scores:  e^{qᵀk_i} / Σ_j e^{qᵀk_j}.
///
/// Shapes    keys (rows >= 1, width), query (width); result (rows)
///
/// Errors    Shape; Argument for a score that is not finite
///
/// Accuracy  1e-15 for scores of a few units, finite for scores of any size (test: Weights.AreTheSoftmax)
[[nodiscard]] std::vector<double> attention_weights(MatrixView<const double> keys,
                                                    std::span<const double> query);

}  // namespace normscope::selectability
