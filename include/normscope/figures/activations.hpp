#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/activations/in_model.hpp>
#include <normscope/activations/observer.hpp>

namespace normscope::figures {

/// What data did in the norms of a model, in their order, as Vega-Lite specifications: an array as that of
/// `charts`. Empty where no norm was called. With `within`, also the selectable keys of its heads.
[[nodiscard]] nlohmann::ordered_json activation_charts(const std::vector<activations::ObservedNorm>& norms,
                                                       const activations::InModel* within = nullptr);

}  // namespace normscope::figures
