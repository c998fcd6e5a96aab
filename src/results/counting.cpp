#include <normscope/results/documents.hpp>

#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>
#include <normscope/nets/rnn/counting.hpp>
#include <normscope/nets/rnn/theorems.hpp>

namespace normscope::results {

using Json = nlohmann::ordered_json;

namespace {

Json drifts_json(const std::vector<nets::rnn::UnitDrift>& drifts) {
  Json all = Json::array();
  for (const nets::rnn::UnitDrift& unit : drifts) {
    Json blocks = Json::array();
    for (const nets::rnn::Drift& block : unit.blocks) {
      blocks.push_back({{"mean", block.mean}, {"deviation", block.deviation}});
    }
    all.push_back({{"unit", unit.unit}, {"counts", unit.counts}, {"blocks", std::move(blocks)}});
  }
  return all;
}

}  // namespace

Json trace(const nets::rnn::Network& network, std::size_t n) {
  const nets::rnn::Word word = nets::rnn::member(network.language, n);
  const nets::rnn::Trace seen = nets::rnn::trace(network, word);
  const auto rows = [](std::span<const double> values, std::size_t width) {
    Json list = Json::array();
    for (std::size_t at = 0; at < values.size(); at += width) {
      list.push_back(std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(at),
                                         values.begin() + static_cast<std::ptrdiff_t>(at + width)));
    }
    return list;
  };
  Json signals = Json::array();
  for (const nets::rnn::Signal& signal : seen.signals) {
    signals.push_back({{"name", signal.name}, {"values", rows(signal.values, seen.width)}});
  }
  return {{"schema", "normscope.trace/1"},
          {"cell", to_string(network.cell.kind)},
          {"language", to_string(network.language)},
          {"head", to_string(network.head)},
          {"n", n},
          {"letters", nets::rnn::text(word)},
          {"accepted", nets::rnn::accepts(network, word)},
          {"signals", std::move(signals)},
          {"outputs", nets::rnn::output_names(network)},
          {"probabilities", rows(nets::rnn::probabilities(network, word), network.outputs())},
          {"drifts", drifts_json(nets::rnn::drifts_if_long(network, n))}};
}

Json count(const CountResult& result) {
  const nets::rnn::Network& network = result.network;
  const nets::rnn::TrainSpec& spec = result.spec;
  Json training;
  if (result.trained) {
    training = {{"epochs", result.trained->loss.size()},
                {"loss", result.trained->loss},
                {"accuracy", result.trained->accuracy}};
  }
  return {{"schema", "normscope.count/1"},
          {"version", version},
          {"cell", to_string(network.cell.kind)},
          {"language", to_string(network.language)},
          {"head", to_string(network.head)},
          {"width", network.cell.width},
          {"spec",
           {{"longest", spec.longest},
            {"batch", spec.batch},
            {"rate", spec.rate},
            {"decay", spec.decay},
            {"clip", spec.clip},
            {"epochs", spec.epochs},
            {"seed", spec.seed}}},
          {"training", std::move(training)},
          {"exact_to", result.range.exact_to()},
          {"accepted",
           {{"member", result.range.member},
            {"one_less", result.range.one_less},
            {"one_more", result.range.one_more},
            {"another", result.range.another}}},
          {"near_members",
           {{"words", result.near_members.words},
            {"right", result.near_members.right},
            {"accepted_members", result.near_members.accepted_members},
            {"rejected_others", result.near_members.rejected_others}}},
          {"n", result.n},
          {"drifts", drifts_json(result.drifts)},
          {"parameters", network.cell.parameters},
          {"output", network.output}};
}

Json hierarchy() {
  Json classes = Json::array();
  for (const nets::rnn::EncoderClass& one : nets::rnn::encoder_classes()) {
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
  for (const nets::rnn::Standing& one : nets::rnn::standings()) {
    stand.push_back({{"architecture", one.architecture},
                     {"decoder", one.decoder},
                     {"language", one.language},
                     {"recognizes", one.recognizes},
                     {"source", one.source},
                     {"test", one.test}});
  }
  Json above = Json::array();
  for (const nets::rnn::Order& one : nets::rnn::orders()) {
    above.push_back(
        {{"more", one.more}, {"less", one.less}, {"because", one.because}, {"source", one.source}});
  }
  return {{"schema", "normscope.hierarchy/1"},
          {"classes", std::move(classes)},
          {"standings", std::move(stand)},
          {"orders", std::move(above)}};
}

}  // namespace normscope::results
