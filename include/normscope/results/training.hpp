#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/nets/train_runs.hpp>

namespace normscope::results {

/// The data that the runs were trained on, as named by the user.
struct TrainedOn {
  std::string data;      ///< name of the task, or of the array of samples
  std::string claim{};   ///< the claim of a paper about the task, or empty
  std::string output{};  ///< the file of the net, or empty
};

/// Several runs and the best of them (`nets::best_of`), schema "normscope.train/1"
/// (docs/schemas/train.schema.json).
[[nodiscard]] nlohmann::ordered_json training(const TrainedOn& on, const std::vector<nets::TrainRun>& runs);

}  // namespace normscope::results
