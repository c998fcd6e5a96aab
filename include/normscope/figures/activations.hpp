#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/activations/observer.hpp>

namespace normscope::figures {

/// What data did in the norms of a model, in their order, as Vega-Lite specifications: an array as that of
/// `charts`. Empty where no norm was called.
[[nodiscard]] nlohmann::ordered_json activation_charts(const std::vector<activations::ObservedNorm>& norms);

}  // namespace normscope::figures
