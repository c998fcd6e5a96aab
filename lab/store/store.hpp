#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The run store: one SQLite file that holds every run of every experiment. Whatever a run has reached lies
/// in it as one transaction with what it needs to go on, so that a killed run is resumed without a repeat or
/// a gap. Several processes may use one file at once.
namespace normscope::lab {

/// What makes a run the run it is; the store has it once.
struct RunKey {
  std::string experiment;
  std::string configuration;  ///< JSON, as the experiment writes it
  std::uint64_t seed = 0;

  bool operator==(const RunKey&) const = default;
};

/// A number measured at a step.
struct Metric {
  std::string name;
  std::uint64_t step = 0;
  double value = 0.0;

  bool operator==(const Metric&) const = default;
};

enum class RunState { waiting, leased, done };

struct RunInfo {
  std::int64_t id = 0;
  RunKey key{};
  RunState state = RunState::waiting;
  std::uint64_t step = 0;    ///< reached and saved
  std::string version{};     ///< of Normscope, when the run began
  std::size_t attempts = 0;  ///< times it was leased
};

/// A run that is this process's to do until the lease runs out.
struct Lease {
  std::int64_t run = 0;
  std::uint64_t token = 0;
  RunKey key{};
  std::uint64_t step = 0;             ///< where to go on from
  std::vector<std::byte> progress{};  ///< what the run saved there; empty at the begin
};

class Store {
 public:
  /// Opens the file, or makes it.
  /// Errors    Io; Format for a file that is no run store, or of a newer layout
  explicit Store(const std::filesystem::path& file);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  [[nodiscard]] const std::filesystem::path& file() const;

  /// Adds the runs that are not there yet; those that are stay as they are. Returns what each is called here.
  std::vector<std::int64_t> add(std::span<const RunKey> runs);

  /// Takes the first of `runs` that waits, or whose lease has run out, for `seconds`; none when all are done
  /// or leased. Of several processes one gets it. Requires  seconds > 0
  [[nodiscard]] std::optional<Lease> lease(std::span<const std::int64_t> runs, double seconds);

  /// How many of `runs` are not done.
  [[nodiscard]] std::size_t open(std::span<const std::int64_t> runs) const;

  /// Saves what the run has measured since the last save together with what it needs to go on, and renews the
  /// lease: all of it or nothing.
  /// Errors    Argument where the lease has been lost to another process, or a step lies before the saved one
  void save(Lease& lease, std::uint64_t step, std::span<const Metric> metrics,
            std::span<const std::byte> progress, double seconds);

  /// The same for the last time: the run is done, and what it needed to go on is dropped.
  void finish(const Lease& lease, std::uint64_t step, std::span<const Metric> metrics);

  /// Lengthens the lease; false where it has been lost to another process.
  bool renew(const Lease& lease, double seconds);

  /// Gives the run back for others, as it was last saved.
  void release(const Lease& lease);

  /// Keeps `bytes` under that name with the run; a name comes once, the newest stays.
  void keep(const Lease& lease, const std::string& name, std::span<const std::byte> bytes);

  /// Runs of an experiment, or of all when it is empty, in the order they were added.
  [[nodiscard]] std::vector<RunInfo> runs(const std::string& experiment = {}) const;
  /// Metrics of a run in the order of steps, then names.
  [[nodiscard]] std::vector<Metric> metrics(std::int64_t run) const;
  [[nodiscard]] std::vector<std::string> artefacts(std::int64_t run) const;
  /// Errors    Argument if there is none of that name
  [[nodiscard]] std::vector<std::byte> artefact(std::int64_t run, const std::string& name) const;

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace normscope::lab
