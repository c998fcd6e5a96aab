#include <normscope/results/figures.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "chart_parts.hpp"

namespace normscope::figures {
namespace {

using analysis::InModel;
using analysis::ObservedNorm;

Json call_order() {
  return {{"field", "name"},
          {"type", "nominal"},
          {"sort", nullptr},
          {"title", "norm, in the order of its first call"},
          {"axis", {{"labelLimit", 160}, {"labelOverlap", true}}}};
}

Json observed_rows(const std::vector<ObservedNorm>& norms, void (*fill)(const ObservedNorm&, Json&)) {
  Json rows = Json::array();
  for (const ObservedNorm& norm : norms) {
    if (norm.summary.rows == 0) continue;
    Json row = {{"name", norm.name}};
    fill(norm, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json observed_points(Json rows, Json y, Json tips) {
  return {{"data", values(std::move(rows))},
          {"height", 220},
          {"mark", {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 1}}},
          {"encoding", {{"x", call_order()}, {"y", std::move(y)}, {"tooltip", std::move(tips)}}}};
}

/// The norm where `field` is largest.
const Json& largest_row(const Json& rows, const char* field) {
  return *std::max_element(rows.begin(), rows.end(), [&](const Json& a, const Json& b) {
    return a[field].get<double>() < b[field].get<double>();
  });
}

std::string in_percent(double share) { return format_number(100.0 * share) + "%"; }

Json sigma_chart(const std::vector<ObservedNorm>& norms) {
  Json rows = observed_rows(norms, [](const ObservedNorm& norm, Json& row) {
    row["low"] = rounded(norm.summary.sigma.low);
    row["median"] = rounded(norm.summary.sigma.median);
    row["high"] = rounded(norm.summary.sigma.high);
    row["most"] = rounded(norm.summary.sigma.most);
  });
  const Json& top = largest_row(rows, "median");
  const std::string answer = fmt::format("The median is largest in {}: {}.", top["name"].get<std::string>(),
                                         format_number(top["median"].get<double>()));
  const bool positive =
      std::all_of(rows.begin(), rows.end(), [](const Json& row) { return row["low"] > 0.0; });
  const char* const title = "deviation of a row (5 %, 50 %, 95 %)";
  Json bar = positive ? logarithmic("low", title) : quantity("low", title);
  Json point = positive ? logarithmic("median", title) : quantity("median", title);
  Json spec = {
      {"data", values(std::move(rows))},
      {"height", 220},
      {"encoding",
       {{"x", call_order()},
        {"tooltip", tooltip({{"low", "5 %"}, {"median", "50 %"}, {"high", "95 %"}, {"most", "largest"}})}}},
      {"layer",
       {{{"mark", {{"type", "rule"}, {"strokeWidth", 2}}},
         {"encoding", {{"y", std::move(bar)}, {"y2", {{"field", "high"}}}}}},
        {{"mark", {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 1}}},
         {"encoding", {{"y", std::move(point)}}}}}}};
  return chart("sigma", "What does each norm divide its rows by?", answer,
               fmt::format("Quantiles of the deviation of the rows that entered {} norms.", norms.size()),
               std::move(spec));
}

Json ones_chart(const std::vector<ObservedNorm>& norms) {
  Json rows = observed_rows(norms, [](const ObservedNorm& norm, Json& row) {
    row["share"] = rounded(norm.summary.ones_share);
    row["most"] = rounded(norm.summary.most_ones_share);
  });
  const Json& top = largest_row(rows, "share");
  const std::string answer = fmt::format("At most {} of |x|², in {}.", in_percent(top["share"].get<double>()),
                                         top["name"].get<std::string>());
  return chart("ones", "How much of its input lies along all-ones, which projection removes?", answer,
               fmt::format("Share of the squared length along all-ones for {} norms.", rows.size()),
               observed_points(rows, quantity("share", "share of |x|² along all-ones"),
                               tooltip({{"share", "all rows"}, {"most", "largest of one row"}})));
}

Json frozen_chart(const std::vector<ObservedNorm>& norms) {
  Json rows = observed_rows(norms, [](const ObservedNorm& norm, Json& row) {
    row["error"] = rounded(norm.summary.frozen_scale_error);
  });
  const Json& top = largest_row(rows, "error");
  const std::string answer =
      fmt::format("Up to {} of the output, in {}.", in_percent(top["error"].get<double>()),
                  top["name"].get<std::string>());
  return chart("frozen", "What does it cost to divide every row by the mean deviation instead of its own?",
               answer,
               fmt::format("Relative root-mean-square error of the output for {} norms.", rows.size()),
               observed_points(rows, quantity("error", "relative error of the output"),
                               tooltip({{"error", "relative error"}})));
}

Json dimension_chart(const std::vector<ObservedNorm>& norms) {
  Json rows = Json::array();
  double least = 1.0;
  std::string where;
  for (const ObservedNorm& norm : norms) {
    if (norm.summary.sampled < 2) continue;
    const double used = norm.summary.used_dimension;
    const double available = norm.summary.available_dimension;
    rows.push_back({{"name", norm.name}, {"series", "used by the data"}, {"dimension", rounded(used)}});
    rows.push_back({{"name", norm.name}, {"series", "of the image"}, {"dimension", rounded(available)}});
    if (available > 0.0 && used / available <= least) {
      least = used / available;
      where = norm.name;
    }
  }
  Json spec = observed_points(rows, quantity("dimension", "effective dimension"),
                              tooltip({{"dimension", "effective dimension"}}));
  spec["encoding"]["color"] = {
      {"field", "series"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}};
  return chart("dimension", "How many dimensions of each norm's image does the data use?",
               where.empty() ? "Too few rows to say."
                             : fmt::format("The smallest share is {}, in {}.", in_percent(least), where),
               fmt::format("Participation ratios of data and image for {} norms.", norms.size()),
               std::move(spec));
}

/// Selectable keys of each measured head and each choice of the norm's parts, as shares.
Json key_rows(const InModel& within, std::array<std::size_t, analysis::norm_parts>& selectable,
              std::size_t& keys) {
  constexpr std::array<const char*, analysis::norm_parts> series{"neither", "projection alone",
                                                                 "scaling alone", "projection and scaling"};
  Json rows = Json::array();
  for (const analysis::ContextKeys& head : within.heads) {
    if (head.keys == 0) continue;
    keys += head.keys;
    const models::Head& place = within.model->heads[head.head];
    for (std::size_t i = analysis::norm_parts; i-- > 0;) {
      selectable[i] += head.counts[i].selectable;
      rows.push_back({{"name", place.place()},
                      {"layer", (place.stack.empty() ? "" : place.stack + " ") + std::to_string(place.layer)},
                      {"series", series[i]},
                      {"share", rounded(static_cast<double>(head.counts[i].selectable) /
                                        static_cast<double>(head.keys))}});
    }
  }
  return rows;
}

void add_key_chart(const InModel& within, Json& charts) {
  std::array<std::size_t, analysis::norm_parts> selectable{};
  std::size_t keys = 0;
  Json rows = key_rows(within, selectable, keys);
  if (rows.empty()) return;
  const auto share = [&](analysis::NormParts parts) {
    return in_percent(static_cast<double>(selectable[static_cast<std::size_t>(parts)]) /
                      static_cast<double>(keys));
  };
  const std::size_t heads = rows.size() / analysis::norm_parts;
  Json spec = {{"data", values(std::move(rows))},
               {"height", 220},
               {"mark", {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 0.75}}},
               {"encoding",
                {{"x", {{"field", "layer"}, {"type", "ordinal"}, {"sort", nullptr}, {"title", "layer"}}},
                 {"xOffset", {{"field", "series"}, {"type", "nominal"}, {"sort", nullptr}}},
                 {"y", quantity("share", "share of selectable keys")},
                 {"color", {{"field", "series"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}},
                 {"tooltip", tooltip({{"share", "share of its keys"}})}}}};
  spec["encoding"]["tooltip"][0]["title"] = "head";
  charts.push_back(
      chart("keys", "Which keys of these contexts can a query select, and what does the norm do for it?",
            fmt::format("{} of the keys behind projection and scaling, {} behind scaling alone, {} behind "
                        "projection alone, {} behind neither.",
                        share(analysis::NormParts::both), share(analysis::NormParts::scaling),
                        share(analysis::NormParts::projection), share(analysis::NormParts::neither)),
            fmt::format("Share of the keys of real contexts that some query gives the highest score, for {} "
                        "heads and four norms.",
                        heads),
            std::move(spec)));
}

}  // namespace

Json activation_charts(const std::vector<ObservedNorm>& norms, const InModel* within) {
  const bool any =
      std::any_of(norms.begin(), norms.end(), [](const ObservedNorm& norm) { return norm.summary.rows > 0; });
  if (!any) return Json::array();
  Json charts = {sigma_chart(norms), ones_chart(norms), frozen_chart(norms), dimension_chart(norms)};
  if (within != nullptr) add_key_chart(*within, charts);
  return charts;
}

}  // namespace normscope::figures
