#include "train_output.hpp"

#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/documents/morph.hpp>
#include <normscope/documents/text.hpp>
#include <normscope/figures/training.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

/// Samples that a morph moves; more are no clearer to see.
constexpr std::size_t most_moving = 4000;

void write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.write("\n");
  file.commit();
}

}  // namespace

void write_train_figures(const std::string& folder, const std::vector<TrainRun>& runs, const TrainRun& best) {
  make_folder(folder);
  const lnnet::Net net = best.trainer.net();
  const lnnet::Dataset& data = best.trainer.data();
  const std::size_t every = best.spec().record_every;
  const auto write = [&](const char* name, const nlohmann::ordered_json& json) {
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

std::string run_line(const TrainRun& run, bool with_groups) {
  const std::string kind = run.linear() ? "linear, " : counted(run.spec().groups, "group") + ", ";
  return fmt::format("{}seed {}: loss {:.4g}, accuracy {:.2f} %{}", with_groups ? kind : "", run.spec().seed,
                     run.score.loss, 100.0 * run.score.accuracy,
                     run.test ? fmt::format(", on new samples {:.2f} %", 100.0 * run.test->accuracy) : "");
}

}  // namespace normscope::cli
