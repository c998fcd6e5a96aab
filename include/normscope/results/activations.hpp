#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/analysis/in_model.hpp>
#include <normscope/analysis/observer.hpp>

namespace normscope::results {

/// Statistics of the rows that entered the norms of a model, in the order of their first calls, schema
/// "normscope.activations/1" (docs/schemas/activations.schema.json). `not_understood` has the names of norms
/// that were called and are not measured, each with the reason.
[[nodiscard]] nlohmann::ordered_json activations(
    const std::string& model, const std::vector<analysis::ObservedNorm>& norms,
    const std::vector<std::pair<std::string, std::string>>& not_understood,
    const analysis::InModel* within = nullptr);

}  // namespace normscope::results
