#include <normscope/automata/figures.hpp>

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/automata/counting.hpp>
#include <normscope/automata/hierarchy.hpp>
#include <normscope/json/vega.hpp>

namespace normscope::automata {
namespace {

using Json = nlohmann::ordered_json;

using vega::quantity;
using vega::shortened;

constexpr std::size_t most_points = 400;

/// The events that the output probabilities refer to.
std::vector<std::string> output_names(const Network& network) {
  if (network.head == Head::membership) return {"in the language"};
  std::vector<std::string> names;
  for (std::size_t letter = 0; letter < letters(network.language); ++letter) {
    names.push_back(text(Word{static_cast<std::uint8_t>(letter)}));
  }
  names.emplace_back("end");
  return names;
}

std::vector<UnitDrift> drifts_if_long(const Network& network, std::size_t n) {
  return n >= least_drift_length ? drifts(network, n) : std::vector<UnitDrift>{};
}

/// Steps to plot: every one, or every n-th and the ends of blocks.
std::vector<std::size_t> shown_steps(std::size_t steps, std::size_t n) {
  const std::size_t apart = (steps + most_points - 1) / most_points;
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
          {"encoding", {{"x", quantity("letters", "letters read")}}}};
}

Json panel(int height, Json rows, Json mark, Json encoding, Json ends) {
  encoding["x"] = quantity("letters", "letters read");
  encoding["x"]["scale"] = {{"nice", false}};
  Json lines = {
      {"data", vega::values(std::move(rows))}, {"mark", std::move(mark)}, {"encoding", std::move(encoding)}};
  return {{"width", 560}, {"height", height}, {"layer", {std::move(lines), std::move(ends)}}};
}

}  // namespace

std::string trace_figure(const Network& network, std::size_t n) {
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
                       {"value", shortened(values[step * seen.width + unit])}});
    }
  }
  const std::vector<double> p = probabilities(network, word);
  const std::vector<std::string> names = output_names(network);
  Json outputs = Json::array();
  for (const std::size_t step : shown) {
    for (std::size_t o = 0; o < names.size(); ++o) {
      outputs.push_back({{"letters", step}, {"of", names[o]}, {"p", shortened(p[step * names.size() + o])}});
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
               fmt::format(
                   "What the units of a trained {} hold while it reads a word of its language with {} "
                   "of every letter, and what it expects; dashed where the letter changes.",
                   kind, n)},
              {"vconcat",
               {panel(220, std::move(units), {{"type", "line"}, {"strokeWidth", 1.5}}, unit_encoding,
                      block_ends(network, n)),
                panel(90, std::move(outputs), {{"type", "line"}, {"strokeWidth", 1.5}}, output_encoding,
                      block_ends(network, n))}},
              {"resolve", {{"scale", {{"color", "independent"}}}}}})
      .dump();
}

std::string trace_json(const Network& network, std::size_t n) {
  const Word word = member(network.language, n);
  const Trace seen = trace(network, word);
  const auto rows = [](std::span<const double> values, std::size_t width) {
    Json list = Json::array();
    for (std::size_t at = 0; at < values.size(); at += width) {
      list.push_back(std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(at),
                                         values.begin() + static_cast<std::ptrdiff_t>(at + width)));
    }
    return list;
  };
  Json signals = Json::array();
  for (const Signal& signal : seen.signals) {
    signals.push_back({{"name", signal.name}, {"values", rows(signal.values, seen.width)}});
  }
  Json moves = Json::array();
  for (const UnitDrift& move : drifts_if_long(network, n)) {
    Json blocks_ = Json::array();
    for (const Drift& block : move.blocks) {
      blocks_.push_back({{"mean", block.mean}, {"deviation", block.deviation}});
    }
    moves.push_back({{"unit", move.unit}, {"counts", move.counts}, {"blocks", std::move(blocks_)}});
  }
  return Json{{"schema", "normscope.trace/1"},
              {"cell", to_string(network.cell.kind)},
              {"language", to_string(network.language)},
              {"head", to_string(network.head)},
              {"n", n},
              {"letters", text(word)},
              {"accepted", accepts(network, word)},
              {"signals", std::move(signals)},
              {"outputs", output_names(network)},
              {"probabilities", rows(probabilities(network, word), network.outputs())},
              {"drifts", std::move(moves)}}
      .dump();
}

std::string hierarchy_json() {
  Json classes = Json::array();
  for (const EncoderClass& one : encoder_classes()) {
    classes.push_back({{"id", one.id},
                       {"name", one.name},
                       {"space", to_string(one.space)},
                       {"rational", one.rational},
                       {"members", one.members},
                       {"says", one.says},
                       {"example", one.example},
                       {"source", one.source},
                       {"test", one.test}});
  }
  Json stand = Json::array();
  for (const Standing& one : standings()) {
    stand.push_back({{"architecture", one.architecture},
                     {"decoder", one.decoder},
                     {"language", one.language},
                     {"recognizes", one.recognizes},
                     {"source", one.source},
                     {"test", one.test}});
  }
  Json above = Json::array();
  for (const Order& one : orders()) {
    above.push_back(
        {{"more", one.more}, {"less", one.less}, {"because", one.because}, {"source", one.source}});
  }
  return Json{{"schema", "normscope.hierarchy/1"},
              {"classes", std::move(classes)},
              {"standings", std::move(stand)},
              {"orders", std::move(above)}}
      .dump();
}

}  // namespace normscope::automata
