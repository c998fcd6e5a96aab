#pragma once

#include <span>
#include <string>

#include <normscope/lnnet/construct.hpp>

namespace normscope::lnnet {

/// The trace of a construction as a Vega-Lite specification with its data: for each fold, the smallest
/// distance between two classes (`Fold::gap`; median and minimum over neighbouring layers) and the number of
/// runs left. Layers without a fold are marked.
[[nodiscard]] std::string fold_figure(std::span<const Fold> folds);

}  // namespace normscope::lnnet
