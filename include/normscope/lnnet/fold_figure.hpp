#pragma once

#include <span>
#include <string>

#include <normscope/lnnet/construct.hpp>

namespace normscope::lnnet {

/// The trace of a construction as a Vega-Lite specification that holds its data: over the layers, how
/// near two classes came in each fold (the median and the least of neighbouring layers, `Fold::gap`) and
/// how many runs were left. Layers that fold nothing are marked.
[[nodiscard]] std::string fold_figure(std::span<const Fold> folds);

}  // namespace normscope::lnnet
