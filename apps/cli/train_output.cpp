#include "train_output.hpp"

#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

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

void write_train_figures(const std::string& folder, const std::vector<nets::TrainRun>& runs) {
  make_folder(folder);
  const auto write = [&](const std::string& name, const nlohmann::ordered_json& json) {
    write_text(fs::path(folder) / name, json_text(json));
  };
  for (const auto& [name, specification] : figures::training_charts(runs)) {
    write(name + ".vl.json", specification);
  }
  const nets::TrainRun& best = nets::best_of(runs);
  const nets::Dataset& data = best.trainer.data();
  if (data.width <= 3 && best.spec().width <= 3 && data.rows() <= most_moving) {
    write("morph.json", results::morph(best.trainer.net(), data));
  }
}

std::string run_line(const nets::TrainRun& run, bool with_groups) {
  const std::string kind = run.linear() ? "linear, " : counted(run.spec().groups, "group") + ", ";
  return fmt::format("{}seed {}: loss {:.4g}, accuracy {:.2f} %{}", with_groups ? kind : "", run.spec().seed,
                     run.score.loss, 100.0 * run.score.accuracy,
                     run.test ? fmt::format(", on new samples {:.2f} %", 100.0 * run.test->accuracy) : "");
}

}  // namespace normscope::cli
