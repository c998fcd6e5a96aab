#include <normscope/results/figures.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/selectability/vocabulary.hpp>

#include "chart_parts.hpp"

namespace normscope::figures {
namespace {

using analysis::TokenAtNorm;
using analysis::TokenTrace;
using analysis::TracedNorm;
using forward::Prediction;
using selectability::Selectability;

/// Tokens that a figure shows; more would not have room for their names.
constexpr std::size_t most_drawn = 64;
/// Positions whose likeliest next tokens are listed.
constexpr std::size_t listed_continuations = 5;

class TraceCharts {
 public:
  TraceCharts(const TokenTrace& trace, const std::vector<std::string>& names)
      : trace_(trace), names_(names), drawn_(std::min(trace.tokens.size(), most_drawn)) {}

  Json all() const {
    Json charts = Json::array();
    charts.push_back(sigma());
    if (trace_.norms.front().observer.spec().centers()) charts.push_back(removed());
    charts.push_back(place());
    if (Json rows = key_rows(); !rows.empty()) charts.push_back(keys(std::move(rows)));
    charts.push_back(next());
    return charts;
  }

 private:
  /// Position and name, so that equal tokens stay apart.
  [[nodiscard]] std::string label(std::size_t position) const {
    return fmt::format("{} {}", position, shown_token(names_, trace_.tokens[position]));
  }
  [[nodiscard]] const std::string& norm_name(const TracedNorm& norm) const {
    return trace_.model->norms[norm.norm].name;
  }
  [[nodiscard]] std::string first_tokens() const {
    return drawn_ < trace_.tokens.size() ? fmt::format(" The first {} tokens are drawn.", drawn_) : "";
  }

  [[nodiscard]] static Json token_axis() {
    return {{"field", "token"},
            {"type", "nominal"},
            {"sort", nullptr},
            {"title", "token"},
            {"axis", {{"labelAngle", -45}, {"labelLimit", 90}, {"labelOverlap", true}}}};
  }
  [[nodiscard]] static Json norm_axis() {
    return {{"field", "name"},
            {"type", "nominal"},
            {"sort", nullptr},
            {"title", "norm, in the order of the forward pass"},
            {"axis", {{"labelLimit", 170}}}};
  }

  /// A row for each norm and token with one number.
  template <typename Value>
  [[nodiscard]] Json rows_of(const char* field, const Value& value) const {
    Json rows = Json::array();
    for (const TracedNorm& norm : trace_.norms) {
      for (std::size_t t = 0; t < drawn_; ++t) {
        rows.push_back(
            {{"name", norm_name(norm)}, {"token", label(t)}, {field, rounded(value(norm.tokens[t]))}});
      }
    }
    return rows;
  }

  [[nodiscard]] Json squares(Json rows, const char* field, const char* title, bool is_logarithmic) const {
    Json colour = {
        {"field", field}, {"type", "quantitative"}, {"title", title}, {"scale", {{"scheme", "blues"}}}};
    if (is_logarithmic) colour["scale"]["type"] = "log";
    Json tips = tooltip({{field, title}});
    tips.insert(tips.begin() + 1, Json({{"field", "token"}, {"title", "token"}}));
    std::set<std::string> names;
    for (const Json& row : rows) names.insert(row["name"].get<std::string>());
    return {{"data", values(std::move(rows))},
            // A height per row would not go with a width that is the page's.
            {"height", 18 * names.size()},
            {"mark", "rect"},
            {"encoding",
             {{"x", token_axis()},
              {"y", norm_axis()},
              {"color", std::move(colour)},
              {"tooltip", std::move(tips)}}}};
  }

  [[nodiscard]] Json sigma() const {
    Json rows = rows_of("sigma", [](const TokenAtNorm& token) { return token.sigma; });
    const auto least_most = extent(rows, "sigma");
    const std::string answer =
        fmt::format("By {} to {}.", format_number(least_most.first), format_number(least_most.second));
    const bool is_logarithmic = least_most.first > 0.0 && least_most.second > 10.0 * least_most.first;
    return chart("trace-sigma", "What does each norm divide each token by?", answer,
                 fmt::format("The deviation of {} tokens at {} norms.{}", trace_.tokens.size(),
                             trace_.norms.size(), first_tokens()),
                 squares(std::move(rows), "sigma", "σ", is_logarithmic));
  }

  [[nodiscard]] Json removed() const {
    Json rows = rows_of("share", [](const TokenAtNorm& token) { return token.ones_share; });
    const double most = extent(rows, "share").second;
    return chart("trace-ones", "How much of each token does projection remove?",
                 fmt::format("At most {} % of |x|².", format_number(100.0 * most)),
                 fmt::format("Share of the squared length along all-ones of {} tokens at {} norms.{}",
                             trace_.tokens.size(), trace_.norms.size(), first_tokens()),
                 squares(std::move(rows), "share", "share of |x|² along all-ones", false));
  }

  /// How far along the longest axis of each norm the tokens lie.
  [[nodiscard]] Json place() const {
    Json rows = Json::array();
    double most = 0.0;
    std::string where;
    for (const TracedNorm& norm : trace_.norms) {
      for (std::size_t t = 0; t < drawn_; ++t) {
        for (std::size_t k = 0; k < std::min<std::size_t>(1, norm.axes.size()); ++k) {
          const double along = norm.tokens[t].place[k];
          rows.push_back({{"name", norm_name(norm)}, {"token", label(t)}, {"along", rounded(along)}});
          if (std::abs(along) <= most) continue;
          most = std::abs(along);
          where = fmt::format("token {} in {}", label(t), norm_name(norm));
        }
      }
    }
    Json spec = squares(rows, "along", "place on the longest axis", false);
    spec["encoding"]["color"]["scale"] = {{"scheme", "blueorange"}, {"domain", {-1, 1}}};
    return chart("trace-place", "Where does each token land on the longest axis of each norm's ellipsoid?",
                 where.empty() ? "No norm has an axis."
                               : fmt::format("The farthest out is {}, at {} of the semi-axis.", where,
                                             format_number(most)),
                 fmt::format("Output without bias along the longest axis, in units of the semi-axis.{}",
                             first_tokens()),
                 std::move(spec));
  }

  [[nodiscard]] Json key_rows() const {
    Json rows = Json::array();
    for (const analysis::ContextKeys& head : trace_.within.heads) {
      const std::string place = trace_.model->heads[head.head].place();
      for (std::size_t t = 0; t < std::min(drawn_, head.first_context.size()); ++t) {
        rows.push_back({{"name", place},
                        {"token", label(t)},
                        {"answer", std::string(to_string(head.first_context[t]))}});
      }
    }
    return rows;
  }

  [[nodiscard]] Json keys(Json rows) const {
    std::size_t selectable = 0;
    std::size_t keys = 0;
    for (const analysis::ContextKeys& head : trace_.within.heads) {
      keys += head.first_context.size();
      selectable += static_cast<std::size_t>(
          std::count(head.first_context.begin(), head.first_context.end(), Selectability::selectable));
    }
    Json spec = squares(std::move(rows), "answer", "key", false);
    spec["encoding"]["y"]["title"] = "head";
    spec["encoding"]["color"] = {{"field", "answer"},
                                 {"type", "nominal"},
                                 {"title", nullptr},
                                 {"scale",
                                  {{"domain", {"selectable", "unselectable", "undecided"}},
                                   {"range", {"#4c78a8", "#e45756", "#bab0ac"}}}}};
    spec["encoding"]["tooltip"] = {{{"field", "name"}, {"title", "head"}},
                                   {{"field", "token"}, {"title", "token"}},
                                   {{"field", "answer"}, {"title", "key"}}};
    return chart("trace-keys", "Which keys of this text can each head select?",
                 fmt::format("{} of {}.", selectable, counted(keys, "key")),
                 fmt::format("For each head and token, whether some query gives its key the highest score.{}",
                             first_tokens()),
                 std::move(spec));
  }

  [[nodiscard]] Json next() const {
    Json rows = Json::array();
    for (std::size_t t = 0; t < drawn_; ++t) {
      const Prediction& prediction = trace_.predictions[t];
      const std::size_t listed = std::min(listed_continuations, prediction.likeliest.size());
      for (std::size_t k = 0; k < listed; ++k) {
        const forward::Continuation& next = prediction.likeliest[k];
        rows.push_back({{"token", label(t)},
                        {"rank", fmt::format("{}", k + 1)},
                        {"next", shown_token(names_, next.token)},
                        {"probability", rounded(next.probability)}});
      }
    }
    const Prediction& last = trace_.predictions.back();
    Json position = token_axis();
    position["title"] = "after token";
    Json spec = {{"data", values(std::move(rows))},
                 {"height", 24 * listed_continuations},
                 {"encoding",
                  {{"x", std::move(position)},
                   {"y", {{"field", "rank"}, {"type", "ordinal"}, {"title", "likeliest next tokens"}}},
                   {"tooltip",
                    {{{"field", "token"}, {"title", "after token"}},
                     {{"field", "next"}, {"title", "next token"}},
                     {{"field", "probability"}, {"title", "probability"}, {"format", ".3~g"}}}}}},
                 {"layer",
                  {{{"mark", "rect"},
                    {"encoding",
                     {{"color",
                       {{"field", "probability"},
                        {"type", "quantitative"},
                        {"title", "probability"},
                        {"scale", {{"scheme", "blues"}, {"domain", {0, 1}}}}}}}}},
                   {{"mark", {{"type", "text"}, {"limit", 60}, {"fontSize", 11}}},
                    {"encoding",
                     {{"text", {{"field", "next"}}},
                      {"color",
                       {{"condition", {{"test", "datum.probability > 0.5"}, {"value", "white"}}},
                        {"value", "#222"}}}}}}}}};
    return chart("trace-next", "What does the model expect next?",
                 fmt::format("After the last token: \"{}\", with probability {}.",
                             shown_token(names_, last.likeliest.front().token),
                             format_number(last.likeliest.front().probability)),
                 fmt::format("The likeliest tokens after each token.{}", first_tokens()), std::move(spec));
  }

  const TokenTrace& trace_;
  const std::vector<std::string>& names_;
  std::size_t drawn_;
};

}  // namespace

Json token_trace_charts(const TokenTrace& trace, const std::vector<std::string>& names) {
  return TraceCharts(trace, names).all();
}

}  // namespace normscope::figures
