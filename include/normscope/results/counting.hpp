#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/nets/rnn/counting.hpp>
#include <normscope/nets/rnn/network.hpp>
#include <normscope/nets/rnn/train.hpp>

namespace normscope::results {

/// A network reading the member of its language with `n` of every letter: {"schema": "normscope.trace/1",
/// "cell", "language", "head", "n", "letters", "accepted", "signals": [{"name", "values": [[a unit]]}],
/// "probabilities": [[an output]], "outputs", "drifts": [{"unit", "counts", "blocks": [{"mean",
/// "deviation"}]}]}. The first row of each is after the start symbol; drifts are included for n of at least
/// `nets::rnn::least_drift_length` (docs/schemas/trace.schema.json).
///
/// Errors    as `nets::rnn::accepts`
[[nodiscard]] nlohmann::ordered_json trace(const nets::rnn::Network& network, std::size_t n);

/// Loss and accuracy of a training after every epoch.
struct TrainingCourse {
  std::vector<double> loss;
  std::vector<double> accuracy;
};

/// The result of testing how far a network counts.
struct CountResult {
  const nets::rnn::Network& network;
  const nets::rnn::TrainSpec& spec;
  const std::optional<TrainingCourse>& trained;  ///< none for a stored network
  const nets::rnn::Range& range;
  const nets::rnn::Score& near_members;
  std::size_t n;  ///< of the word over which drifts are computed
  const std::vector<nets::rnn::UnitDrift>& drifts;
};

/// Schema "normscope.count/1" (docs/schemas/count.schema.json).
[[nodiscard]] nlohmann::ordered_json count(const CountResult& result);

/// The contents of `automata/hierarchy.hpp`, schema "normscope.hierarchy/1"
/// (docs/schemas/hierarchy.schema.json).
[[nodiscard]] nlohmann::ordered_json hierarchy();

}  // namespace normscope::results
