#include <normscope/results/figures.hpp>

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/rounding.hpp>
#include <normscope/nets/rnn/counting.hpp>
#include <normscope/results/figures/vega.hpp>

namespace normscope::figures {
namespace {

using Json = nlohmann::ordered_json;
using nets::rnn::CellKind;
using nets::rnn::Network;
using nets::rnn::Trace;
using nets::rnn::UnitDrift;
using nets::rnn::Word;

using vega::ordinal;
using vega::quantity;

/// Steps to plot: every one, or every n-th and the ends of blocks.
std::vector<std::size_t> shown_steps(std::size_t steps, std::size_t n) {
  constexpr std::size_t points_per_line = 400;
  const std::size_t apart = (steps + points_per_line - 1) / points_per_line;
  std::vector<std::size_t> shown;
  for (std::size_t step = 0; step < steps; ++step) {
    if (step % apart == 0 || step % std::max<std::size_t>(1, n) == 0) shown.push_back(step);
  }
  return shown;
}

Json block_ends(const Network& network, std::size_t n) {
  Json ends = Json::array();
  for (std::size_t block = 1; block < letters(network.language); ++block)
    ends.push_back({{"letters", block * n}});
  return {{"data", vega::values(std::move(ends))},
          {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", "gray"}}},
          {"encoding", {{"x", ordinal("letters", "letters read")}}}};
}

Json panel(int height, Json rows, Json mark, Json encoding, Json ends) {
  encoding["x"] = ordinal("letters", "letters read");
  encoding["x"]["scale"] = {{"nice", false}};
  Json lines = {
      {"data", vega::values(std::move(rows))}, {"mark", std::move(mark)}, {"encoding", std::move(encoding)}};
  return {{"width", 560}, {"height", height}, {"layer", {std::move(lines), std::move(ends)}}};
}

}  // namespace

Json counting_trace(const Network& network, std::size_t n) {
  const Word word = member(network.language, n);
  const Trace seen = trace(network, word);
  const bool has_cell = network.cell.kind == CellKind::lstm;
  const std::span<const double> values = seen.of(has_cell ? "c" : "h");
  const std::vector<UnitDrift> moves = drifts_if_long(network, n);
  const std::vector<std::size_t> shown = shown_steps(seen.steps, n);

  Json units = Json::array();
  for (std::size_t unit = 0; unit < seen.width; ++unit) {
    const std::string name = fmt::format("{}{}", has_cell ? "c" : "h", unit);
    const bool counts = !moves.empty() && moves[unit].counts;
    for (const std::size_t step : shown) {
      units.push_back({{"letters", step},
                       {"unit", name},
                       {"role", counts ? name + " counts" : std::string("other units")},
                       {"value", rounded_to_four_decimals(values[step * seen.width + unit])}});
    }
  }
  const std::vector<double> p = probabilities(network, word);
  const std::vector<std::string> names = output_names(network);
  Json outputs = Json::array();
  for (const std::size_t step : shown) {
    for (std::size_t o = 0; o < names.size(); ++o) {
      outputs.push_back(
          {{"letters", step}, {"of", names[o]}, {"p", rounded_to_four_decimals(p[step * names.size() + o])}});
    }
  }
  // Units that do not count share one grey; counters come first in the list of colours.
  Json roles = Json::array();
  Json colours = Json::array();
  constexpr const char* palette[] = {"#d1495b", "#2e6f95", "#e09f3e", "#4f772d", "#7b4ea3"};
  for (const UnitDrift& move : moves) {
    if (!move.counts) continue;
    colours.push_back(palette[roles.size() % std::size(palette)]);
    roles.push_back(fmt::format("{}{} counts", has_cell ? "c" : "h", move.unit));
  }
  roles.push_back("other units");
  colours.push_back("#b5b5b5");
  const Json unit_encoding = {{"y", quantity("value", has_cell ? "c" : "h")},
                              {"detail", {{"field", "unit"}, {"type", "nominal"}}},
                              {"color",
                               {{"field", "role"},
                                {"type", "nominal"},
                                {"title", nullptr},
                                {"scale", {{"domain", std::move(roles)}, {"range", std::move(colours)}}}}}};
  Json probability = quantity("p", "probability");
  probability["scale"] = {{"domain", {0, 1}}};
  const Json output_encoding = {
      {"y", std::move(probability)},
      {"color", {{"field", "of"}, {"type", "nominal"}, {"title", nullptr}, {"sort", names}}}};
  const char* const kind = network.cell.kind == CellKind::lstm  ? "LSTM"
                           : network.cell.kind == CellKind::gru ? "GRU"
                                                                : "Elman network";
  return vega::specification(
      {{"description",
        fmt::format("What the units of a trained {} hold while it reads a word of its language with {} "
                    "of every letter, and what it expects; dashed where the letter changes.",
                    kind, n)},
       {"vconcat",
        {panel(220, std::move(units), {{"type", "line"}, {"strokeWidth", 1.5}}, unit_encoding,
               block_ends(network, n)),
         panel(90, std::move(outputs), {{"type", "line"}, {"strokeWidth", 1.5}}, output_encoding,
               block_ends(network, n))}},
       {"resolve", {{"scale", {{"color", "independent"}}}}}});
}

}  // namespace normscope::figures
