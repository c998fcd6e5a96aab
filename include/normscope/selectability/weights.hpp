#pragma once

#include <span>
#include <string>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/selectability/select.hpp>

namespace normscope::selectability {

/// Attention weights of a query on each key, the softmax of its scores:  e^{qᵀk_i} / Σ_j e^{qᵀk_j}.
///
/// Shapes    keys (rows >= 1, width), query (width); result (rows)
/// Errors    Shape; Argument for a score that is not finite
/// Accuracy  1e-15 for scores of a few units, finite for scores of any size (test: Weights.AreTheSoftmax)
[[nodiscard]] std::vector<double> attention_weights(MatrixView<const double> keys,
                                                    std::span<const double> query);

/// The weights as bars over the keys, coloured by whether a key can be selected at all, as a Vega-Lite
/// specification whose data set is called "weights": JSON text.
/// Requires  one verdict per weight
[[nodiscard]] std::string attention_figure(std::span<const double> weights, const Selection& selection);

}  // namespace normscope::selectability
