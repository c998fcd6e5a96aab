#include <normscope/results/training.hpp>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

namespace normscope::results {

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
