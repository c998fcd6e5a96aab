#include "train_output.hpp"

#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/core/version.hpp>
#include <normscope/documents/morph.hpp>
#include <normscope/documents/text.hpp>
#include <normscope/figures/training.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Samples that a morph moves; more are no clearer to see.
constexpr std::size_t most_moving = 4000;

Json score_json(const lnnet::Score& score) { return {{"loss", score.loss}, {"accuracy", score.accuracy}}; }

Json transitions_json(const std::vector<lnnet::Transition>& found) {
  Json result = Json::array();
  for (const lnnet::Transition& t : found) result.push_back({{"step", t.step}, {"gain", t.gain}});
  return result;
}

Json run_json(const TrainRun& run) {
  const lnnet::TrainSpec& spec = run.spec();
  const std::size_t reached =
      lnnet::first_step_at(run.trainer.accuracy(), spec.record_every, 0.95, spec.steps);
  return {{"seed", spec.seed},
          {"groups", run.linear() ? Json() : Json(spec.groups)},
          {"train", score_json(run.score)},
          {"test", run.test ? score_json(*run.test) : Json()},
          {"step_at_95", reached < spec.steps ? Json(reached) : Json()},
          {"transitions", transitions_json(run.transitions())}};
}

void write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.write("\n");
  file.commit();
}

}  // namespace

Json train_document(const TrainedOn& on, const std::vector<TrainRun>& runs, const TrainRun& best) {
  const lnnet::TrainSpec& spec = best.spec();
  const lnnet::Dataset& data = best.trainer.data();
  Json all = Json::array();
  for (const TrainRun& run : runs) all.push_back(run_json(run));
  return {{"schema", "normscope.train/1"},
          {"version", version},
          {"data", on.what},
          {"claim", on.task != nullptr && !on.task->claim.empty() ? Json(on.task->claim) : Json()},
          {"rows", data.rows()},
          {"features", data.width},
          {"classes", data.classes},
          {"conflicts", lnnet::conflicts(data).rows},
          {"net",
           {{"width", spec.width},
            {"depth", spec.depth},
            {"activation", std::string(lnnet::to_string(spec.activation))},
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

void write_train_figures(const std::string& folder, const std::vector<TrainRun>& runs, const TrainRun& best) {
  make_folder(folder);
  const lnnet::Net net = best.trainer.net();
  const lnnet::Dataset& data = best.trainer.data();
  const std::size_t every = best.spec().record_every;
  const auto write = [&](const char* name, const Json& json) {
    write_text(fs::path(folder) / name, json_text(json));
  };
  write("curves.vl.json",
        figures::training_curves(best.trainer.loss(), best.trainer.accuracy(), every, best.transitions()));
  if (data.width == 2) write("boundary.vl.json", figures::decision_boundary(net, data));
  if (data.width <= 3 && best.spec().width <= 3 && data.rows() <= most_moving) {
    write("morph.json", documents::morph(net, data));
  }
  std::vector<figures::RunCurves> alike;
  std::vector<figures::GroupResult> results;
  bool swept = false;
  for (const TrainRun& run : runs) {
    results.push_back({.groups = run.linear() ? 0 : run.spec().groups, .accuracy = run.score.accuracy});
    const bool same = run.spec().groups == best.spec().groups && run.linear() == best.linear();
    swept = swept || !same;
    if (same) alike.push_back({run.trainer.loss(), run.trainer.accuracy(), run.transitions()});
  }
  if (alike.size() > 1) write("seeds.vl.json", figures::training_seeds(alike, every));
  if (swept)
    write("groups.vl.json", figures::accuracy_over_groups(results, best.spec().norm, best.spec().width));
}

std::string describe(const TrainRun& run, bool with_groups) {
  const std::string kind = run.linear() ? "linear, " : counted(run.spec().groups, "group") + ", ";
  return fmt::format("{}seed {}: loss {:.4g}, accuracy {:.2f} %{}", with_groups ? kind : "", run.spec().seed,
                     run.score.loss, 100.0 * run.score.accuracy,
                     run.test ? fmt::format(", on new samples {:.2f} %", 100.0 * run.test->accuracy) : "");
}

}  // namespace normscope::cli
