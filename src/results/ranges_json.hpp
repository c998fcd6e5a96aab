#pragma once

#include <nlohmann/json.hpp>

#include <normscope/analysis/ranges.hpp>

namespace normscope::results {

/// Norms, readers and logits of a model, as `ranges` and `report` write them.
[[nodiscard]] nlohmann::ordered_json ranges_json(const analysis::ModelRanges& found);

}  // namespace normscope::results
