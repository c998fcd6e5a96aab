#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/lnnet/train.hpp>

namespace normscope::documents {

/// A finished training of an LN-Net and its scores.
struct TrainRun {
  lnnet::Trainer trainer;
  lnnet::Score score{};
  std::optional<lnnet::Score> test{};

  [[nodiscard]] const lnnet::TrainSpec& spec() const { return trainer.spec(); }
  /// A depth of none: a linear classifier.
  [[nodiscard]] bool linear() const { return spec().depth == 0; }
  /// On new samples where there are some; the best of several runs has the largest.
  [[nodiscard]] double accuracy() const { return test ? test->accuracy : score.accuracy; }
  [[nodiscard]] std::vector<lnnet::Transition> transitions() const {
    return lnnet::transitions(trainer.accuracy(), spec().record_every);
  }
};

/// What the runs were trained on, as it was asked for.
struct TrainedOn {
  std::string data;      ///< name of the task, or of the array of samples
  std::string claim{};   ///< what a source says of the task, or empty
  std::string output{};  ///< the file of the net, or empty
};

/// Several runs and the best of them, schema "normscope.train/1" (docs/schemas/train.schema.json).
[[nodiscard]] nlohmann::ordered_json training(const TrainedOn& on, const std::vector<TrainRun>& runs,
                                              const TrainRun& best);

}  // namespace normscope::documents
