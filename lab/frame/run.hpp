#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/parallel.hpp>

#include "store/store.hpp"

namespace normscope::lab {

struct Experiment;

using Json = nlohmann::ordered_json;
using Bytes = std::vector<std::byte>;

/// A run in progress: its configuration, its saved progress, and the destination of its measurements. A run
/// measures the same numbers however often it is interrupted: it draws only from its seed, and its progress
/// contains all other state.
class Run {
 public:
  /// A run without a store, for tests. After Cancelled it can be performed again, and continues.
  Run(Json configuration, std::uint64_t seed, Progress progress = {});
  /// The run of `lease`, which expires after `seconds` unless renewed; a thread renews it.
  Run(Store& store, Lease lease, double seconds, Progress progress);
  ~Run();

  [[nodiscard]] const Json& configuration() const { return configuration_; }
  /// Requires  the configuration has that key; every experiment's `plan` defines its keys
  template <class T>
  [[nodiscard]] T get(const char* name) const {
    return configuration_.at(name).get<T>();
  }
  [[nodiscard]] std::uint64_t seed() const { return lease_.key.seed; }

  /// The step to continue from, and the progress saved there; initially 0 and empty.
  [[nodiscard]] std::uint64_t step() const { return lease_.step; }
  [[nodiscard]] std::span<const std::byte> progress() const { return lease_.progress; }

  /// Records a number measured at `step`, once per name and step.
  ///
  /// Requires  step >= the one to continue from,
  ///           and > it unless that is 0
  void measure(std::string name, std::uint64_t step, double value);

  /// Stores bytes with the run, under a name with the usual file extension of their type.
  void keep(const std::string& name, std::string_view bytes);

  /// Reports that `step` of `total` is done and all its numbers are measured. Shows the progress, and saves
  /// the result of `progress` if the last save was some seconds ago or the work is to stop.
  ///
  /// Errors    Cancelled, after saving, if the work is to stop
  void reached(std::uint64_t step, std::uint64_t total, const std::function<Bytes()>& progress);

  /// Measurements that are not yet saved; all of them for a run without a store.
  [[nodiscard]] const std::vector<Metric>& measured() const { return pending_; }

 private:
  friend void perform(Store& store, const Experiment& experiment, const Lease& lease, double seconds,
                      const Progress& progress);
  struct LeaseRenewer;

  void save(Bytes progress);
  /// Adds to the lease what this process has spent since the last time.
  void account_for_time();

  Json configuration_;
  Lease lease_{};
  Progress progress_;
  std::uint64_t reached_ = 0;
  double processor_seconds_ = 0.0;  ///< of this process, accounted for
  std::vector<Metric> pending_{};
  std::unique_ptr<LeaseRenewer> keeper_{};
};

/// Performs the run of `lease` to its end, or until `progress` cancels it.
///
/// Errors    Cancelled, with the run saved and released; whatever the experiment throws, with the run
///           released
void perform(Store& store, const Experiment& experiment, const Lease& lease, double seconds,
             const Progress& progress);

}  // namespace normscope::lab
