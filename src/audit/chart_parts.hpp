#pragma once

#include <cstdlib>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/audit/report.hpp>
#include <normscope/json/vega.hpp>

/// What the figures of a report are put together from.
namespace normscope::audit {

using Json = nlohmann::ordered_json;
using vega::logarithmic;
using vega::quantity;
using vega::values;

/// Five digits draw the same curve and keep the pages of deep models small.
[[nodiscard]] inline double rounded(double value) {
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

/// One question, its figure, and what the figure says in words.
[[nodiscard]] inline Json chart(const char* id, const char* question, const std::string& answer,
                                const std::string& description, Json spec) {
  spec["width"] = "container";
  return {{"id", id},
          {"question", question},
          {"answer", answer},
          {"description", description},
          {"spec", vega::specification(std::move(spec))}};
}

/// What each head can do, appended to `charts` where heads are known.
void head_spreads(const Report& report, Json& charts);
/// How that changes with distance, where heads are rotary.
void head_distances(const Report& report, Json& charts);

}  // namespace normscope::audit
