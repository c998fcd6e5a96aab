#pragma once

#include <cstddef>

#include <nlohmann/json_fwd.hpp>

#include <normscope/automata/network.hpp>

namespace normscope::documents {

/// A network reading the member of its language with `n` of every letter: {"schema": "normscope.trace/1",
/// "cell", "language", "head", "n", "letters", "accepted", "signals": [{"name", "values": [[a unit]]}],
/// "probabilities": [[an output]], "outputs", "drifts": [{"unit", "counts", "blocks": [{"mean",
/// "deviation"}]}]}. The first row of each is after the start symbol; drifts are included for n of at least
/// `automata::least_drift_length` (docs/schemas/trace.schema.json).
///
/// Errors    as `automata::accepts`
[[nodiscard]] nlohmann::ordered_json trace(const automata::Network& network, std::size_t n);

/// The contents of `automata/hierarchy.hpp`, schema "normscope.hierarchy/1"
/// (docs/schemas/hierarchy.schema.json).
[[nodiscard]] nlohmann::ordered_json hierarchy();

}  // namespace normscope::documents
