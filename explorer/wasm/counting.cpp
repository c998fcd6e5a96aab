#include <string>
#include <vector>

#include <emscripten/bind.h>
#include <nlohmann/json.hpp>

#include <normscope/automata/counting.hpp>
#include <normscope/automata/network.hpp>
#include <normscope/automata/saturated.hpp>
#include <normscope/automata/trained.hpp>
#include <normscope/documents/counting.hpp>
#include <normscope/documents/text.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

const automata::Network& network(const std::string& cell, const std::string& language) {
  return automata::trained(automata::cell_kind(cell), automata::language(language));
}

val flags(const std::vector<bool>& values) {
  val result = val::array();
  for (const bool value : values) result.call<void>("push", value);
  return result;
}

/// What happens inside on the member with n of every letter, as JSON text.
std::string trace(const std::string& cell, const std::string& language, double n) {
  return guarded(
      [&] { return json_text(documents::trace(network(cell, language), static_cast<std::size_t>(n))); });
}

/// What a picture shows of it: {units, values, outputs, probabilities, counts, accepted}; values has a row of
/// the units' states and probabilities one of the outputs' for each letter, the first after the start symbol;
/// counts says which units count, null for a word too short to tell.
val states(const std::string& cell, const std::string& language, double n) {
  return guarded([&] {
    const automata::Network& net = network(cell, language);
    const automata::Word word = automata::member(net.language, static_cast<std::size_t>(n));
    const automata::Trace seen = automata::trace(net, word);
    val counts = val::array();
    const std::vector<automata::UnitDrift> moves = automata::drifts_if_long(net, static_cast<std::size_t>(n));
    for (const automata::UnitDrift& move : moves) counts.call<void>("push", move.counts);
    val outputs = val::array();
    for (const std::string& name : automata::output_names(net)) outputs.call<void>("push", name);
    val result = val::object();
    result.set("units", static_cast<double>(seen.width));
    result.set("values", float64_array(seen.of(net.cell.kind == automata::CellKind::lstm ? "c" : "h")));
    result.set("outputs", outputs);
    result.set("probabilities", float64_array(automata::probabilities(net, word)));
    result.set("counts", moves.empty() ? val::null() : counts);
    result.set("accepted", automata::accepts(net, word));
    return result;
  });
}

/// Of the members up to n = most and what differs from them in the last letters: {member, another, exactTo}.
val range(const std::string& cell, const std::string& language, double most) {
  return guarded([&] {
    const automata::Range found = automata::range(network(cell, language), static_cast<std::size_t>(most));
    val result = val::object();
    result.set("member", flags(found.member));
    result.set("another", flags(found.another));
    result.set("exactTo", static_cast<double>(found.exact_to()));
    return result;
  });
}

/// Of a word of the language's letters: {member, lstm, gru, constructed}, who takes it for a member.
val judge(const std::string& language_name, const std::string& text) {
  return guarded([&] {
    const automata::Language language = automata::language(language_name);
    const automata::Word word = automata::word(text, automata::letters(language));
    val result = val::object();
    result.set("member", automata::contains(language, word));
    result.set("lstm", automata::accepts(network("lstm", language_name), word));
    result.set("gru", automata::accepts(network("gru", language_name), word));
    result.set("constructed", automata::accepts(automata::lstm_counter(language), word));
    return result;
  });
}

/// The classes of architectures and what they recognize, as JSON text.
std::string hierarchy() { return json_text(documents::hierarchy()); }

}  // namespace

EMSCRIPTEN_BINDINGS(counting) {
  emscripten::function("countingTrace", &trace);
  emscripten::function("countingStates", &states);
  emscripten::function("countingRange", &range);
  emscripten::function("countingJudge", &judge);
  emscripten::function("countingHierarchy", &hierarchy);
}

}  // namespace normscope::wasm
