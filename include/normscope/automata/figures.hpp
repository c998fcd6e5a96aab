#pragma once

#include <cstddef>
#include <string>

#include <normscope/automata/network.hpp>

/// What a network does on a member of its language, as JSON text.
namespace normscope::automata {

/// Vega-Lite: c of an lstm, h of the others, a line a unit over the letters read, those that count in
/// colour, blocks apart; below, the probabilities that are read off. At most some 400 points a line.
/// Source    [Weiss, Goldberg, Yahav 2018, figure 1]
/// Errors    as `accepts`
[[nodiscard]] std::string trace_figure(const Network& network, std::size_t n);

/// The same as data, every letter of it: {"schema": "normscope.trace/1", "cell", "language", "head", "n",
/// "letters", "accepted", "signals": [{"name", "values": [[a unit]]}], "probabilities": [[an output]],
/// "outputs", "drifts": [{"unit", "counts", "blocks": [{"mean", "deviation"}]}]}, the first row of each
/// after the start symbol; drifts only for n of `least_drift_length` and more
/// (docs/schemas/trace.schema.json).
/// Errors    as `accepts`
[[nodiscard]] std::string trace_json(const Network& network, std::size_t n);

/// Who can do what, for a map to click: what `hierarchy.hpp` holds.
/// {"schema": "normscope.hierarchy/1", "classes": […], "standings": […], "orders": […]}, their entries the
/// structures' members by name.
[[nodiscard]] std::string hierarchy_json();

}  // namespace normscope::automata
