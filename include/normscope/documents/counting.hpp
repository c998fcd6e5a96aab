#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/automata/counting.hpp>
#include <normscope/automata/network.hpp>
#include <normscope/automata/train.hpp>

namespace normscope::documents {

/// A network reading the member of its language with `n` of every letter: {"schema": "normscope.trace/1",
/// "cell", "language", "head", "n", "letters", "accepted", "signals": [{"name", "values": [[a unit]]}],
/// "probabilities": [[an output]], "outputs", "drifts": [{"unit", "counts", "blocks": [{"mean",
/// "deviation"}]}]}. The first row of each is after the start symbol; drifts are included for n of at least
/// `automata::least_drift_length` (docs/schemas/trace.schema.json).
///
/// Errors    as `automata::accepts`
[[nodiscard]] nlohmann::ordered_json trace(const automata::Network& network, std::size_t n);

/// Loss and accuracy of a training after every epoch.
struct TrainingCourse {
  std::vector<double> loss;
  std::vector<double> accuracy;
};

/// The result of testing how far a network counts.
struct CountResult {
  const automata::Network& network;
  const automata::TrainSpec& spec;
  const std::optional<TrainingCourse>& trained;  ///< none for a stored network
  const automata::Range& range;
  const automata::Score& near_members;
  std::size_t n;  ///< of the word over which drifts are computed
  const std::vector<automata::UnitDrift>& drifts;
};

/// Schema "normscope.count/1" (docs/schemas/count.schema.json).
[[nodiscard]] nlohmann::ordered_json count(const CountResult& result);

/// The contents of `automata/hierarchy.hpp`, schema "normscope.hierarchy/1"
/// (docs/schemas/hierarchy.schema.json).
[[nodiscard]] nlohmann::ordered_json hierarchy();

}  // namespace normscope::documents
