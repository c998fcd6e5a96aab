#include <normscope/results/documents.hpp>

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/rounding.hpp>
#include <normscope/core/version.hpp>
#include <normscope/nets/circle.hpp>

namespace normscope::results {

nlohmann::ordered_json classification(const nets::Net& net, std::span<const std::int64_t> labels) {
  return {{"schema", "normscope.run/1"},
          {"version", version},
          {"layers", net.layers.size()},
          {"rows", labels.size()},
          {"labels", std::vector<std::int64_t>(labels.begin(), labels.end())}};
}

using Json = nlohmann::ordered_json;

Json construction(const nets::Construction& made, nets::Mode mode, const std::string& output) {
  return {{"schema", "normscope.build/1"},
          {"version", version},
          {"output", output.empty() ? Json() : Json(output)},
          {"mode", mode == nets::Mode::paper ? "paper" : "stable"},
          {"precision", std::string(to_string(made.net.precision))},
          {"layers", made.net.layers.size()},
          {"width", made.net.layers.empty() ? 0 : 3},
          {"classes", made.net.classes},
          {"correct", made.correct},
          {"total", made.total},
          {"distinct", made.distinct},
          {"relabelled", made.relabelled},
          {"attempts", made.attempts}};
}

std::string fold_lines(const std::vector<nets::Fold>& folds) {
  std::string lines;
  for (std::size_t l = 0; l < folds.size(); ++l) {
    const nets::Fold& fold = folds[l];
    Json line = {{"layer", l},      {"pair", nullptr},  {"midpoint", fold.midpoint}, {"radius", fold.radius},
                 {"gap", fold.gap}, {"runs", fold.runs}};
    if (fold.first != nets::no_row) line["pair"] = {fold.first, fold.second};
    lines += line.dump() + "\n";
  }
  return lines;
}

nlohmann::ordered_json morph(const nets::Net& net, const nets::Dataset& data) {
  const nets::MorphStates states = morph_states(net, data.view());
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const std::vector<double>& entries : states.list) {
    Json state = Json::array();
    for (std::size_t row = 0; row < data.rows(); ++row) {
      Json point = Json::array();
      for (std::size_t i = 0; i < states.width; ++i)
        point.push_back(rounded_to_four_decimals(entries[row * states.width + i]));
      state.push_back(std::move(point));
    }
    list.push_back(std::move(state));
  }
  return {{"schema", "normscope.morph/1"},
          {"width", states.width},
          {"labels", data.labels},
          {"states", std::move(list)}};
}

using Json = nlohmann::ordered_json;
using nets::TrainRun;

namespace {

Json score_json(const nets::Score& score) { return {{"loss", score.loss}, {"accuracy", score.accuracy}}; }

Json transitions_json(const std::vector<nets::Transition>& found) {
  Json result = Json::array();
  for (const nets::Transition& t : found) result.push_back({{"step", t.step}, {"gain", t.gain}});
  return result;
}

Json run_json(const TrainRun& run) {
  const nets::TrainSpec& spec = run.spec();
  const std::size_t reached =
      nets::first_step_at(run.trainer.accuracy(), spec.record_every, 0.95, spec.steps);
  return {{"seed", spec.seed},
          {"groups", run.linear() ? Json() : Json(spec.groups)},
          {"train", score_json(run.score)},
          {"test", run.test ? score_json(*run.test) : Json()},
          {"step_at_95", reached < spec.steps ? Json(reached) : Json()},
          {"transitions", transitions_json(run.transitions())}};
}

}  // namespace

Json training(const TrainedOn& on, const std::vector<TrainRun>& runs) {
  const TrainRun& best = nets::best_of(runs);
  const nets::TrainSpec& spec = best.spec();
  const nets::Dataset& data = best.trainer.data();
  Json all = Json::array();
  for (const TrainRun& run : runs) all.push_back(run_json(run));
  return {{"schema", "normscope.train/1"},
          {"version", version},
          {"data", on.data},
          {"claim", on.claim.empty() ? Json() : Json(on.claim)},
          {"rows", data.rows()},
          {"features", data.width},
          {"classes", data.classes},
          {"conflicts", nets::conflicts(data).rows},
          {"net",
           {{"width", spec.width},
            {"depth", spec.depth},
            {"activation", std::string(nets::to_string(spec.activation))},
            {"norm", std::string(to_string(spec.norm))},
            {"groups", spec.groups},
            {"eps", spec.eps},
            {"affine", spec.affine},
            {"parameters", best.trainer.parameters().size()}}},
          {"steps", spec.steps},
          {"batch", spec.batch},
          {"seed", spec.seed},
          {"train", score_json(best.score)},
          {"test", best.test ? score_json(*best.test) : Json()},
          {"record_every", spec.record_every},
          {"loss", best.trainer.loss()},
          {"accuracy", best.trainer.accuracy()},
          {"transitions", transitions_json(best.transitions())},
          {"runs", all},
          {"output", on.output.empty() ? Json() : Json(on.output)}};
}

}  // namespace normscope::results
