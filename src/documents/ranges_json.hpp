#pragma once

#include <nlohmann/json.hpp>

#include <normscope/ranges/ranges.hpp>

namespace normscope::documents {

/// Norms, readers and logits of a model, as `ranges` and `report` write them.
[[nodiscard]] nlohmann::ordered_json ranges_json(const ranges::ModelRanges& found);

}  // namespace normscope::documents
