#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

#include <normscope/nets/construct.hpp>

namespace normscope::figures {

/// The trace of a construction as a Vega-Lite specification with its data: for each fold, the smallest
/// distance between two classes (`nets::Fold::gap`; median and minimum over neighbouring layers) and the
/// number of runs left. Layers without a fold are marked.
[[nodiscard]] nlohmann::ordered_json folds(std::span<const nets::Fold> folds);

}  // namespace normscope::figures
