#pragma once

#include <cstddef>
#include <string>

#include <normscope/automata/network.hpp>

/// Figures and data of a network reading a member of its language, as JSON text.
namespace normscope::automata {

/// Vega-Lite: c of an lstm, h of other cells, one line per unit over the letters read, with counters in
/// colour and blocks separated; below, the output probabilities. At most about 400 points per line.
/// Source    [Weiss, Goldberg, Yahav 2018, figure 1]
/// Errors    as `accepts`
[[nodiscard]] std::string trace_figure(const Network& network, std::size_t n);

/// The same as data, for every letter: {"schema": "normscope.trace/1", "cell", "language", "head", "n",
/// "letters", "accepted", "signals": [{"name", "values": [[a unit]]}], "probabilities": [[an output]],
/// "outputs", "drifts": [{"unit", "counts", "blocks": [{"mean", "deviation"}]}]}. The first row of each is
/// after the start symbol; drifts are included for n of at least `least_drift_length`
/// (docs/schemas/trace.schema.json).
/// Errors    as `accepts`
[[nodiscard]] std::string trace_json(const Network& network, std::size_t n);

/// The contents of `hierarchy.hpp`, for an interactive map.
[[nodiscard]] std::string hierarchy_json();

}  // namespace normscope::automata
