#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/activations/in_model.hpp>
#include <normscope/activations/observer.hpp>

namespace normscope::documents {

/// Statistics of the rows that entered the norms of a model, in the order of their first calls, schema
/// "normscope.activations/1" (docs/schemas/activations.schema.json). `not_understood` has the names of norms
/// that were called and are not measured, each with the reason.
[[nodiscard]] nlohmann::ordered_json activations(
    const std::string& model, const std::vector<activations::ObservedNorm>& norms,
    const std::vector<std::pair<std::string, std::string>>& not_understood,
    const activations::InModel* within = nullptr);

}  // namespace normscope::documents
