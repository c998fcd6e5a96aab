#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/analysis/report.hpp>

namespace normscope::figures {

/// The report's figures as Vega-Lite specifications with their data: an array of
/// {id, question, answer, description, spec}.
[[nodiscard]] nlohmann::ordered_json charts(const analysis::Report& report);

}  // namespace normscope::figures
