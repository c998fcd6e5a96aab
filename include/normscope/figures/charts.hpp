#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/audit/report.hpp>

namespace normscope::figures {

/// The report's figures as Vega-Lite specifications with their data: an array of
/// {id, question, answer, description, spec}.
[[nodiscard]] nlohmann::ordered_json charts(const audit::Report& report);

}  // namespace normscope::figures
