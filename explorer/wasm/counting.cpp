#include <algorithm>
#include <string>
#include <vector>

#include <emscripten/bind.h>
#include <nlohmann/json.hpp>

#include <normscope/nets/rnn/counting.hpp>
#include <normscope/nets/rnn/network.hpp>
#include <normscope/nets/rnn/saturated.hpp>
#include <normscope/results/documents.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

const nets::rnn::Network& network(const std::string& cell, const std::string& language) {
  return nets::rnn::trained(nets::rnn::cell_kind(cell), nets::rnn::language(language));
}

val flags(const std::vector<bool>& values) {
  val result = val::array();
  for (const bool value : values) result.call<void>("push", value);
  return result;
}

/// What happens inside on the member with n of every letter, as JSON text.
std::string trace(const std::string& cell, const std::string& language, double n) {
  return guarded(
      [&] { return json_text(results::trace(network(cell, language), static_cast<std::size_t>(n))); });
}

/// What a picture shows of it: {units, values, outputs, probabilities, counts, accepted}; values has a row of
/// the units' states and probabilities one of the outputs' for each letter, the first after the start symbol;
/// counts says which units count, by a longer word if this one is too short to tell.
val states(const std::string& cell, const std::string& language, double n) {
  return guarded([&] {
    const nets::rnn::Network& net = network(cell, language);
    const nets::rnn::Word word = nets::rnn::member(net.language, static_cast<std::size_t>(n));
    const nets::rnn::Trace seen = nets::rnn::trace(net, word);
    val counts = val::array();
    const std::size_t long_enough = std::max(static_cast<std::size_t>(n), nets::rnn::least_drift_length);
    for (const nets::rnn::UnitDrift& move : nets::rnn::drifts(net, long_enough)) {
      counts.call<void>("push", move.counts);
    }
    val outputs = val::array();
    for (const std::string& name : nets::rnn::output_names(net)) outputs.call<void>("push", name);
    val result = val::object();
    result.set("units", static_cast<double>(seen.width));
    result.set("values", float64_array(seen.of(net.cell.kind == nets::rnn::CellKind::lstm ? "c" : "h")));
    result.set("outputs", outputs);
    result.set("probabilities", float64_array(nets::rnn::probabilities(net, word)));
    result.set("counts", counts);
    result.set("accepted", nets::rnn::accepts(net, word));
    return result;
  });
}

/// {member, another, exactTo}: who accepts the members up to n = most, and words with other last letters.
val range(const std::string& cell, const std::string& language, double most) {
  return guarded([&] {
    const nets::rnn::Range found = nets::rnn::range(network(cell, language), static_cast<std::size_t>(most));
    val result = val::object();
    result.set("member", flags(found.member));
    result.set("another", flags(found.another));
    result.set("exactTo", static_cast<double>(found.exact_to()));
    return result;
  });
}

/// {member, lstm, gru, constructed}: who takes a word of the language's letters for a member.
val judge(const std::string& language_name, const std::string& text) {
  return guarded([&] {
    const nets::rnn::Language language = nets::rnn::language(language_name);
    const nets::rnn::Word word = nets::rnn::word(text, nets::rnn::letters(language));
    val result = val::object();
    result.set("member", nets::rnn::contains(language, word));
    result.set("lstm", nets::rnn::accepts(network("lstm", language_name), word));
    result.set("gru", nets::rnn::accepts(network("gru", language_name), word));
    result.set("constructed", nets::rnn::accepts(nets::rnn::lstm_counter(language), word));
    return result;
  });
}

/// The classes of architectures and what they recognize, as JSON text.
std::string hierarchy() { return json_text(results::hierarchy()); }

}  // namespace

EMSCRIPTEN_BINDINGS(counting) {
  emscripten::function("countingTrace", &trace);
  emscripten::function("countingStates", &states);
  emscripten::function("countingRange", &range);
  emscripten::function("countingJudge", &judge);
  emscripten::function("countingHierarchy", &hierarchy);
}

}  // namespace normscope::wasm
