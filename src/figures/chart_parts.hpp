#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <normscope/audit/report.hpp>
#include <normscope/audit/text.hpp>
#include <normscope/figures/vega.hpp>
#include <normscope/numeric/rounded.hpp>

/// What the figures of a report are put together from.
namespace normscope::figures {

using Json = nlohmann::ordered_json;
using audit::HeadReach;
using audit::NormReport;
using audit::number;
using audit::number_at_least;
using audit::number_at_most;
using audit::Report;
using vega::logarithmic;
using vega::quantity;
using vega::values;

/// Five digits draw the same curve and keep the pages of deep models small.
[[nodiscard]] inline double rounded(double value) { return rounded_to_digits(value, 5); }

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

/// The norm's name and the numbers in these {field, title}.
[[nodiscard]] inline Json tooltip(std::initializer_list<std::pair<const char*, const char*>> fields) {
  Json result = {{{"field", "name"}, {"title", "norm"}}};
  for (const auto& [field, title] : fields) {
    result.push_back({{"field", field}, {"title", title}, {"type", "quantitative"}, {"format", ".4~g"}});
  }
  return result;
}

/// Whether the place of a row's norm in the forward pass is known.
[[nodiscard]] bool is_ordered(const Json& row);

/// What the positions of `rows` are.
[[nodiscard]] const char* depth_title(const Json& rows);

/// Position in the forward pass, the x axis of everything that runs through depth.
[[nodiscard]] Json depth_axis(const Json& rows);

[[nodiscard]] Json role_colour();

/// Least and largest value of a field.
[[nodiscard]] std::pair<double, double> extent(const Json& rows, const char* field);

/// An axis for positive ratios: logarithmic where they differ by powers, else as close as they are.
[[nodiscard]] Json ratio_axis(const Json& rows, const char* field, const char* title);

/// What each head can do, appended to `charts` where heads are known.
void head_spreads(const Report& report, Json& charts);
/// How that changes with distance, where heads are rotary.
void head_distances(const Report& report, Json& charts);

}  // namespace normscope::figures
