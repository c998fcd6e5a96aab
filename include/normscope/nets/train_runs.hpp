#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/nets/tasks.hpp>
#include <normscope/nets/train.hpp>

/// Several trainings, of which the best is kept.
namespace normscope::nets {

/// A finished training of an LN-Net and its scores.
struct TrainRun {
  Trainer trainer;
  Score score{};
  std::optional<Score> test{};

  [[nodiscard]] const TrainSpec& spec() const { return trainer.spec(); }
  /// Whether the depth is 0: a linear classifier.
  [[nodiscard]] bool linear() const { return spec().depth == 0; }
  /// On new samples, if there are any; the best of several runs has the largest accuracy.
  [[nodiscard]] double accuracy() const { return test ? test->accuracy : score.accuracy; }
  [[nodiscard]] std::vector<Transition> transitions() const {
    return nets::transitions(trainer.accuracy(), spec().record_every);
  }
};

/// The training data of a net, for each seed.
struct TrainData {
  std::function<std::shared_ptr<const Dataset>(std::uint64_t seed)> samples{};
  std::function<Dataset(std::uint64_t seed)> test{};  ///< empty where there are no new samples
};

/// The data of a task, in `rows` samples or as many as it has by default (0).
[[nodiscard]] TrainData data_of(const Task& task, std::size_t rows);
/// The data with noise added to the samples and to the test samples (`with_noise` of tasks.hpp).
[[nodiscard]] TrainData with_noise(TrainData data, double deviation);
/// These samples for every seed.
[[nodiscard]] TrainData data_of(Dataset samples);

struct TrainPlan {
  TrainSpec spec{};
  /// Numbers of groups to train with instead of the spec's. With several, a linear classifier is trained
  /// first for comparison.
  std::vector<std::size_t> groups{};
  std::size_t seeds = 1;          ///< consecutive seeds, from the spec's on, for each number of groups
  std::filesystem::path state{};  ///< of an unfinished training, read and written; empty for none
};

/// Trains every net of the plan.
///
/// Errors    Argument for a spec that is not valid, for several runs with a state, and for weights that leave
///           the range of float64; Cancelled, leaving the state in `plan.state`; as `Trainer::resume`
[[nodiscard]] std::vector<TrainRun> train_all(const TrainPlan& plan, const TrainData& data,
                                              unsigned threads = 0, const Progress& progress = {});

/// The most accurate, the first among equals.
///
/// Requires  at least one run
[[nodiscard]] const TrainRun& best_of(const std::vector<TrainRun>& runs);

}  // namespace normscope::nets
