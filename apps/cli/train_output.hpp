#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/lnnet/tasks.hpp>
#include <normscope/lnnet/train.hpp>

/// What `train` writes of its runs: the machine form, the figures, the lines for people.
namespace normscope::cli {

struct TrainRun {
  lnnet::Trainer trainer;
  lnnet::Score score{};
  std::optional<lnnet::Score> test{};

  [[nodiscard]] const lnnet::TrainSpec& spec() const { return trainer.spec(); }
  /// A depth of none: a linear classifier.
  [[nodiscard]] bool linear() const { return spec().depth == 0; }
  /// What the best of several is chosen by.
  [[nodiscard]] double accuracy() const { return test ? test->accuracy : score.accuracy; }
  [[nodiscard]] std::vector<lnnet::Transition> transitions() const {
    return lnnet::transitions(trainer.accuracy(), spec().record_every);
  }
};

/// A training as it was asked for: the task, or samples and no task.
struct TrainedOn {
  std::string what;
  const lnnet::Task* task = nullptr;
  std::string output;
};

[[nodiscard]] nlohmann::ordered_json train_document(const TrainedOn& on, const std::vector<TrainRun>& runs,
                                                    const TrainRun& best);

/// Writes curves, boundary, seeds, groups and morph into `folder`, each where the runs have it.
/// Errors    Io
void write_train_figures(const std::string& folder, const std::vector<TrainRun>& runs, const TrainRun& best);

/// A line about a run.
[[nodiscard]] std::string describe(const TrainRun& run, bool with_groups);

}  // namespace normscope::cli
