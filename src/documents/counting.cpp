#include <normscope/documents/counting.hpp>

#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/automata/counting.hpp>
#include <normscope/automata/hierarchy.hpp>

namespace normscope::documents {

using Json = nlohmann::ordered_json;

Json trace(const automata::Network& network, std::size_t n) {
  const automata::Word word = automata::member(network.language, n);
  const automata::Trace seen = automata::trace(network, word);
  const auto rows = [](std::span<const double> values, std::size_t width) {
    Json list = Json::array();
    for (std::size_t at = 0; at < values.size(); at += width) {
      list.push_back(std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(at),
                                         values.begin() + static_cast<std::ptrdiff_t>(at + width)));
    }
    return list;
  };
  Json signals = Json::array();
  for (const automata::Signal& signal : seen.signals) {
    signals.push_back({{"name", signal.name}, {"values", rows(signal.values, seen.width)}});
  }
  Json moves = Json::array();
  for (const automata::UnitDrift& move : automata::drifts_if_long(network, n)) {
    Json blocks_ = Json::array();
    for (const automata::Drift& block : move.blocks) {
      blocks_.push_back({{"mean", block.mean}, {"deviation", block.deviation}});
    }
    moves.push_back({{"unit", move.unit}, {"counts", move.counts}, {"blocks", std::move(blocks_)}});
  }
  return {{"schema", "normscope.trace/1"},
          {"cell", to_string(network.cell.kind)},
          {"language", to_string(network.language)},
          {"head", to_string(network.head)},
          {"n", n},
          {"letters", automata::text(word)},
          {"accepted", automata::accepts(network, word)},
          {"signals", std::move(signals)},
          {"outputs", automata::output_names(network)},
          {"probabilities", rows(automata::probabilities(network, word), network.outputs())},
          {"drifts", std::move(moves)}};
}

Json hierarchy() {
  Json classes = Json::array();
  for (const automata::EncoderClass& one : automata::encoder_classes()) {
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
  for (const automata::Standing& one : automata::standings()) {
    stand.push_back({{"architecture", one.architecture},
                     {"decoder", one.decoder},
                     {"language", one.language},
                     {"recognizes", one.recognizes},
                     {"source", one.source},
                     {"test", one.test}});
  }
  Json above = Json::array();
  for (const automata::Order& one : automata::orders()) {
    above.push_back(
        {{"more", one.more}, {"less", one.less}, {"because", one.because}, {"source", one.source}});
  }
  return {{"schema", "normscope.hierarchy/1"},
          {"classes", std::move(classes)},
          {"standings", std::move(stand)},
          {"orders", std::move(above)}};
}

}  // namespace normscope::documents
