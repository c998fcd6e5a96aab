#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/results/figures/vega.hpp>
#include <normscope/results/words.hpp>

/// Parts that the figures of a report share.
namespace normscope::figures {

using Json = nlohmann::ordered_json;
using analysis::NormReport;
using analysis::Report;
using heads::HeadReach;
using results::format_at_least;
using results::format_at_most;
using results::format_number;
using vega::logarithmic;
using vega::ordinal;
using vega::quantity;
using vega::values;

/// Five digits draw the same curve and keep the pages of deep models small.
[[nodiscard]] inline double rounded(double value) { return rounded_to_digits(value, 5); }

/// One question, its figure, and the answer in words.
[[nodiscard]] Json chart(const char* id, const char* question, const std::string& answer,
                         const std::string& description, Json spec);

/// The norm's name and the numbers in these {field, title}.
[[nodiscard]] inline Json tooltip(std::initializer_list<std::pair<const char*, const char*>> fields) {
  Json result = {{{"field", "name"}, {"title", "norm"}}};
  for (const auto& [field, title] : fields) {
    result.push_back({{"field", field}, {"title", title}, {"type", "quantitative"}, {"format", ".4~g"}});
  }
  return result;
}

/// Whether the position of a row's norm in the forward pass is known.
[[nodiscard]] bool is_ordered(const Json& row);

/// The meaning of the positions of `rows`, as an axis title.
[[nodiscard]] const char* depth_title(const Json& rows);

/// Names short enough for an axis: without a beginning that all share, and of long ones the end.
[[nodiscard]] std::vector<std::string> axis_names(const std::vector<std::string>& names);

/// A token's name, with control characters escaped and without quotes, or its number.
[[nodiscard]] std::string shown_token(const std::vector<std::string>& names, std::size_t token);

/// Names as a list in Vega's expressions, of which every JSON text is one, whatever the names hold.
[[nodiscard]] std::string list_expression(const std::vector<std::string>& names);

/// An axis that prints names at the positions 0, 1, …, of at most about `most` of them.
[[nodiscard]] Json named_axis(const std::vector<std::string>& names, std::size_t most);

/// Position in the forward pass, the x axis of figures over depth: the norms of these names, which it prints.
[[nodiscard]] Json depth_axis(const Json& rows, const std::vector<std::string>& names);

/// The names of the norms of a report, in order.
[[nodiscard]] std::vector<std::string> norm_names(const Report& report);

/// The fields of a row that determine its place in a figure over depth.
[[nodiscard]] Json depth_row(const Report& report, std::size_t index);

/// A colour for each role, without a legend where no role is known.
[[nodiscard]] Json role_colour(const Json& rows);

/// "from 2.1 to 41", or the number itself where both are printed alike.
[[nodiscard]] std::string from_to(double low, double high, std::string (*text)(double) = format_number);

/// Least and largest value of a field.
[[nodiscard]] std::pair<double, double> extent(const Json& rows, const char* field);

/// An axis for positive ratios: logarithmic if they differ by orders of magnitude, otherwise linear.
[[nodiscard]] Json ratio_axis(const Json& rows, const char* field, const char* title);

/// Ranks on a logarithmic axis that ends where they do.
[[nodiscard]] Json rank_axis(const char* title);

/// Semi-axes below this share of the median are drawn at it: they are zero but for rounding, and would take
/// most of a logarithmic axis.
constexpr double least_drawn = 1e-8;

/// About `points` of the semi-axes of an image, descending, as rows {rank, length}.
[[nodiscard]] Json spectrum_rows(std::span<const double> lengths, double median, std::size_t points);

/// A figure for each of the first causes of a report that has unusual values, with the band of what is usual;
/// their ids are those of `results::cause_chart_id`.
[[nodiscard]] Json cause_charts(const Report& report);

}  // namespace normscope::figures
