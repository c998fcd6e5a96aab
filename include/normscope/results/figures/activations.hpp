#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/analysis/in_model.hpp>
#include <normscope/analysis/observer.hpp>

namespace normscope::figures {

/// Figures of the rows that entered the norms of a model, in their order, as an array like that of `charts`.
/// Empty if no norm was called. With `within`, the selectable keys of its heads are included.
[[nodiscard]] nlohmann::ordered_json activation_charts(const std::vector<analysis::ObservedNorm>& norms,
                                                       const analysis::InModel* within = nullptr);

}  // namespace normscope::figures
