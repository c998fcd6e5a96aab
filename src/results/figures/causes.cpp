#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "chart_parts.hpp"

namespace normscope::figures {
namespace {

using analysis::Cause;
using analysis::Measure;
using analysis::Subject;
using analysis::UnusualValue;

/// Gains below this share of the median are drawn at it.
constexpr double least_ratio = 1e-4;

/// The axis of a measure.
struct Drawn {
  const char* title;
  bool is_share = false;
};

Drawn drawn(Measure measure) {
  switch (measure) {
    case Measure::largest_gain: return {"largest gain over the norm's median"};
    case Measure::effective_dimension: return {"effective dimension over axes", true};
    case Measure::null_direction: return {"cosine of what is removed to all-ones"};
    case Measure::switched_off: return {"features switched off", true};
    case Measure::sign_changes: return {"features that change sign", true};
    case Measure::bias: return {"length of the bias over the radius"};
    case Measure::image_change: return {"similarity to the norm before"};
    case Measure::removed_weight: return {"reader's weight without effect", true};
    case Measure::unusual_coordinate: return {"gain over the norm's median"};
    case Measure::uniform_head: return {"least spread of scores, in nats"};
    case Measure::sharp_head: return {"largest spread of scores, in nats"};
  }
  return {""};
}

/// A grey band from `low` to `high` on the axis `y`, behind what is drawn over it. Its label stands above the
/// figure, where no point covers it, beside a piece of the grey.
Json band(double low, double high, const std::string& label, Json y) {
  const Json row = {{"low", rounded(low)}, {"high", rounded(high)}, {"label", label}};
  y["field"] = "high";
  const auto at = [](int pixels) { return Json{{"value", pixels}}; };
  // A band without height is a line.
  const bool is_line = low == high;
  const Json mark = is_line ? Json{{"type", "rule"}, {"color", "#808080"}}
                            : Json{{"type", "rect"}, {"color", "#808080"}, {"opacity", 0.2}};
  Json piece = {{"x", at(0)}, {"x2", at(14)}, {"y", at(is_line ? -9 : -14)}};
  if (!is_line) piece["y2"] = at(-4);
  return {
      {"data", values(Json::array({row}))},
      {"encoding", {{"y", std::move(y)}}},
      {"layer",
       {{{"mark", mark},
         {"encoding", {{"x", at(0)}, {"x2", {{"value", "width"}}}, {"y2", {{"field", "low"}}}}}},
        {{"mark", mark}, {"encoding", std::move(piece)}},
        {{"mark",
          {{"type", "text"}, {"align", "left"}, {"baseline", "middle"}, {"opacity", 0.8}, {"fontSize", 11}}},
         {"encoding", {{"x", at(19)}, {"y", at(-9)}, {"text", {{"field", "label"}}}}}}}}};
}

/// The y axis over all rows and the band.
Json value_axis(const Json& rows, const std::pair<double, double>& usual, const Drawn& what) {
  Json all = rows;
  for (const double end : {usual.first, usual.second}) all.push_back({{"value", end}});
  const auto [low, high] = extent(all, "value");
  Json axis = low > 0.0 ? ratio_axis(all, "value", what.title) : quantity("value", what.title);
  axis["scale"]["domain"] = {rounded(low), rounded(high)};
  axis["scale"]["nice"] = false;
  axis["scale"]["padding"] = 8;
  if (!axis["scale"].contains("type")) axis["scale"]["zero"] = false;
  axis["axis"] = {{"tickCount", 5}, {"labelOverlap", true}};
  if (what.is_share) axis["axis"]["format"] = "%";
  return axis;
}

/// Points over depth, those of the cause filled and large, with the band of usual values behind them.
Json over_depth(const Report& report, const Json& rows, const std::pair<double, double>& usual,
                const std::string& label, const Drawn& what) {
  const auto where_unusual = [](double there, double elsewhere) {
    return Json{{"condition", {{"test", "datum.unusual"}, {"value", there}}}, {"value", elsewhere}};
  };
  const Json y = value_axis(rows, usual, what);
  Json points = {{"data", values(rows)},
                 {"mark", {{"type", "point"}, {"filled", true}}},
                 {"encoding",
                  {{"x", depth_axis(rows, norm_names(report))},
                   {"y", y},
                   {"color", role_colour(rows)},
                   {"size", where_unusual(90, 22)},
                   {"opacity", where_unusual(1.0, 0.6)},
                   {"tooltip", tooltip({{"value", what.title}})}}}};
  return {{"height", 200}, {"layer", {band(usual.first, usual.second, label, y), std::move(points)}}};
}

/// Values of heads by layer.
Json over_layers(const Report& report, const Json& rows, const std::pair<double, double>& usual,
                 const std::string& label, const Drawn& what) {
  Json x = ordinal("layer", "layer");
  int last = 1;
  for (const models::Head& head : report.model.heads) last = std::max(last, head.layer);
  x["scale"] = {{"domain", {0, last}}, {"padding", 12}, {"nice", false}};
  Json layers = Json::array();
  for (int layer = 0; layer <= last; ++layer) layers.push_back(layer);
  x["axis"] = {{"values", std::move(layers)}, {"format", "d"}, {"labelOverlap", true}};
  const Json y = value_axis(rows, usual, what);
  const Json tips = {
      {{"field", "name"}, {"title", "head"}},
      {{"field", "value"}, {"title", what.title}, {"type", "quantitative"}, {"format", ".4~g"}}};
  Json points = {{"data", values(rows)},
                 {"mark", {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 0.75}}},
                 {"encoding", {{"x", std::move(x)}, {"y", y}, {"tooltip", tips}}}};
  return {{"height", 200}, {"layer", {band(usual.first, usual.second, label, y), std::move(points)}}};
}

/// From where to where values of a measure are usual.
std::pair<double, double> usual_range(const UnusualValue& value, const Json& rows) {
  const analysis::MeasureFacts& row = facts(value.measure);
  const auto [low, high] = extent(rows, "value");
  // A measure without an ordinary end has a band that shows where usual values begin.
  const double other = row.ordinary.value_or(row.large ? std::min(low, value.usual.limit / 2.0)
                                                       : std::max(high, 2.0 * value.usual.limit));
  return {std::min(other, value.usual.limit), std::max(other, value.usual.limit)};
}

std::string label_of(const analysis::Usual& usual) {
  return fmt::format("usual: {} of {} reference models", usual.within, usual.of);
}

Json coordinate_figure(const Report& report, const Cause& cause) {
  Json rows = Json::array();
  for (const analysis::MeasuredValue& ratio : cause.ratios) {
    Json row = depth_row(report, ratio.place);
    // A gain of zero is drawn at the end of the logarithmic axis.
    row["value"] = rounded(std::max(ratio.value, least_ratio));
    // Where several coordinates are switched off, the cause of this norm may be another of them.
    row["unusual"] = std::binary_search(cause.norms.begin(), cause.norms.end(), ratio.place) &&
                     (!cause.switched_off || ratio.value <= analysis::off_ratio);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return {};
  // Gains that switch nothing off, up to the limit of largest gains.
  std::pair<double, double> usual{analysis::off_ratio, analysis::outlier_ratio};
  std::string label = "neither amplified nor switched off";
  for (const analysis::ComparedMeasure& compared : report.measures) {
    if (compared.measure != Measure::largest_gain || !compared.usual) continue;
    usual.second = compared.usual->limit;
    label = label_of(*compared.usual);
  }
  return over_depth(report, rows, usual, label, drawn(Measure::unusual_coordinate));
}

Json norm_figure(const Report& report, const UnusualValue& value) {
  Json rows = Json::array();
  for (const analysis::MeasuredValue& at : measure(report, value.measure)) {
    Json row = depth_row(report, at.place);
    row["value"] = rounded(at.value);
    row["unusual"] = is_unusual(at.value, value.measure, value.usual);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return {};
  return over_depth(report, rows, usual_range(value, rows), label_of(value.usual), drawn(value.measure));
}

Json heads_figure(const Report& report, const UnusualValue& value) {
  Json rows = Json::array();
  for (const analysis::MeasuredValue& at : measure(report, value.measure)) {
    const models::Head& head = report.model.heads[report.heads[at.place].head];
    rows.push_back({{"layer", head.layer}, {"name", head.place()}, {"value", rounded(at.value)}});
  }
  if (rows.empty()) return {};
  return over_layers(report, rows, usual_range(value, rows), label_of(value.usual), drawn(value.measure));
}

}  // namespace

Json cause_charts(const Report& report) {
  Json charts = Json::array();
  for (std::size_t i = 0; i < std::min(report.causes.size(), analysis::first_causes); ++i) {
    const Cause& cause = report.causes[i];
    if (cause.values.empty()) continue;
    const UnusualValue& value = cause.values.front();
    Json spec = cause.subject == Subject::coordinate ? coordinate_figure(report, cause)
                : cause.subject == Subject::heads    ? heads_figure(report, value)
                                                     : norm_figure(report, value);
    if (spec.is_null()) continue;
    const results::CauseText text = results::describe(cause, report);
    const bool flat = facts(value.measure).ordinary == value.usual.limit;
    charts.push_back(chart(
        results::cause_chart_id(i).c_str(), text.title.c_str(),
        cause.subject == Subject::coordinate
            ? fmt::format(
                  "The gain of coordinate {} in each norm. The grey band reaches from gains that switch "
                  "nothing off to the largest gain of most reference models.",
                  cause.coordinates.front())
            : fmt::format("The grey {} is what {} of {} reference models stay {}.", flat ? "line" : "band",
                          value.usual.within, value.usual.of, flat ? "on" : "within"),
        fmt::format("{}: {}, {}.", text.title, text.numbers.front().name, text.numbers.front().text),
        std::move(spec)));
  }
  return charts;
}

}  // namespace normscope::figures
