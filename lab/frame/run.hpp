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

#include <normscope/core/progress.hpp>

#include "store/store.hpp"

namespace normscope::lab {

struct Experiment;

using Json = nlohmann::ordered_json;
using Bytes = std::vector<std::byte>;

/// One run under way: what it is, how far it had come, and where its numbers go. A run computes the same
/// numbers wherever and however often it is stopped: it draws from its seed alone, and what it needs to go
/// on is in its progress.
class Run {
 public:
  /// A run that no store keeps, for tests. After Cancelled it can be performed again, and goes on.
  Run(Json configuration, std::uint64_t seed, Progress progress = {});
  /// The run of `lease`, which lasts `seconds` without a sign of life; a thread renews it.
  Run(Store& store, Lease lease, double seconds, Progress progress);
  ~Run();

  [[nodiscard]] const Json& configuration() const { return configuration_; }
  /// Requires  the configuration has it; every experiment's `plan` says what it has
  template <class T>
  [[nodiscard]] T get(const char* name) const {
    return configuration_.at(name).get<T>();
  }
  [[nodiscard]] std::uint64_t seed() const { return lease_.key.seed; }

  /// The step to go on from, and what was saved there; 0 and nothing at the begin.
  [[nodiscard]] std::uint64_t step() const { return lease_.step; }
  [[nodiscard]] std::span<const std::byte> progress() const { return lease_.progress; }

  /// A number measured at `step`, once a name and step. Requires  step >= the one to go on from; above it
  /// where that is not 0
  void measure(std::string name, std::uint64_t step, double value);

  /// Bytes to keep with the run, under a name that ends like a file of their kind.
  void keep(const std::string& name, std::string_view bytes);

  /// `step` of `total` is done and all its numbers are measured. Shows it; saves when the last time is some
  /// seconds ago or the work is to stop, with what `progress` gives to go on from here.
  /// Errors    Cancelled, when it is saved and the work is to stop
  void reached(std::uint64_t step, std::uint64_t total, const std::function<Bytes()>& progress);

  /// What was measured and not yet saved: everything, where no store keeps the run.
  [[nodiscard]] const std::vector<Metric>& measured() const { return pending_; }

 private:
  friend void perform(Store& store, const Experiment& experiment, const Lease& lease, double seconds,
                      const Progress& progress);
  struct Keeper;

  void save(Bytes progress);

  Json configuration_;
  Lease lease_{};
  Progress progress_;
  std::uint64_t reached_ = 0;
  std::vector<Metric> pending_{};
  std::unique_ptr<Keeper> keeper_{};
};

/// Does the run of `lease` to its end, or to where `progress` stops it.
/// Errors    Cancelled, with the run saved and given back; whatever the experiment throws, with it given back
void perform(Store& store, const Experiment& experiment, const Lease& lease, double seconds,
             const Progress& progress);

}  // namespace normscope::lab
