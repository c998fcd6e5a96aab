#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

/// Where a run comes from, as the store records it.
namespace normscope::lab {

/// The processor and the number of its threads, "AMD EPYC 9B14, 2 threads"; never empty.
[[nodiscard]] const std::string& this_machine();

/// The commit that this program was built from, as `git describe --always --dirty` names it; empty if it was
/// built outside of a git repository.
[[nodiscard]] std::string_view source_revision();

}  // namespace normscope::lab

/// The run store: one SQLite file with every run of every experiment. Measurements and the progress of a run
/// are saved in one transaction, so that a killed run is resumed without duplicates or gaps. Several
/// processes may use one file concurrently.
namespace normscope::lab {

/// The identity of a run; the store has each at most once.
struct RunKey {
  std::string experiment;
  nlohmann::ordered_json configuration;  ///< as produced by the experiment; text in the file only
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
  std::string version{};     ///< version of Normscope when the run began
  std::size_t attempts = 0;  ///< number of times it was leased
  double started = 0.0;      ///< when it was first leased, seconds since 1970; 0: unknown
  double seconds = 0.0;      ///< processor time of all attempts; 0: unknown
  std::uint64_t peak = 0;    ///< most memory of a process that performed it, bytes; 0: unknown
  std::string machine{};     ///< where it was last leased; empty: unknown
  std::string revision{};    ///< of the source code then, as git describes it; empty: unknown
};

/// A rule that the store holds, with the time at which it was first written.
struct StoredRule {
  std::string experiment;
  std::string claim;
  std::string hash;
  std::string text;  ///< JSON
  double written = 0.0;

  bool operator==(const StoredRule&) const = default;
};

/// What a process needed for a run since the last save.
struct Spent {
  double seconds = 0.0;    ///< processor time
  std::uint64_t peak = 0;  ///< most memory, bytes
};

/// A run that this process performs until the lease expires.
struct Lease {
  std::int64_t run = 0;
  std::uint64_t token = 0;
  RunKey key{};
  std::uint64_t step = 0;             ///< step to continue from
  std::vector<std::byte> progress{};  ///< state saved there; empty at the start
  Spent spent{};                      ///< written with the next save
};

class Store {
 public:
  /// Opens the file, or creates it.
  ///
  /// Errors    Io; Format for a file that is not a run store or has a newer layout
  explicit Store(const std::filesystem::path& file);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  [[nodiscard]] const std::filesystem::path& file() const;

  /// Adds the runs that do not exist yet; existing ones are unchanged. Returns the store's id of each.
  std::vector<std::int64_t> add(std::span<const RunKey> runs);

  /// Writes rules with the present time. One that the store has keeps its time.
  void write_rules(std::span<const StoredRule> rules);
  /// The rules of an experiment, in the order they were written.
  [[nodiscard]] std::vector<StoredRule> rules(const std::string& experiment) const;

  /// Performs all writes of `write` in one transaction: if it throws, the file is as before.
  void together(const std::function<void()>& write);

  /// Adds a completed run, or a rule, of another store, with its times. Returns false if the store has it.
  ///
  /// Errors    Argument if the store has that run with other numbers, or not completed
  bool import_run(const RunInfo& run, std::span<const Metric> metrics);
  bool import_rule(const StoredRule& rule);

  /// Leases the first of `runs` that is waiting, or whose lease has expired, for `seconds`; empty if all are
  /// done or leased. Only one process gets a run. `device` is what computes it beside the processor, recorded
  /// with the machine.
  ///
  /// Requires  seconds > 0
  [[nodiscard]] std::optional<Lease> lease(std::span<const std::int64_t> runs, double seconds,
                                           const std::string& device = {});

  /// Number of `runs` that are not done.
  [[nodiscard]] std::size_t open(std::span<const std::int64_t> runs) const;

  /// Saves the measurements since the last save and the state needed to continue in one transaction, and
  /// renews the lease.
  ///
  /// Errors    Argument if the lease has been lost to another process, or a step is before the saved one
  void save(Lease& lease, std::uint64_t step, std::span<const Metric> metrics,
            std::span<const std::byte> progress, double seconds);

  /// The final save: marks the run as done and deletes its progress.
  void finish(const Lease& lease, std::uint64_t step, std::span<const Metric> metrics);

  /// Renews the lease; returns false if it has been lost to another process.
  bool renew(const Lease& lease, double seconds);

  /// Releases the run as it was last saved.
  void release(const Lease& lease);

  /// Stores `bytes` with the run under that name, replacing earlier ones.
  void keep(const Lease& lease, const std::string& name, std::span<const std::byte> bytes);

  /// Runs of an experiment, or of all if it is empty, in the order they were added.
  [[nodiscard]] std::vector<RunInfo> runs(const std::string& experiment = {}) const;
  /// Metrics of a run, sorted by step, then name.
  [[nodiscard]] std::vector<Metric> metrics(std::int64_t run) const;
  [[nodiscard]] std::vector<std::string> artefacts(std::int64_t run) const;
  /// Errors    Argument if there is none of that name
  [[nodiscard]] std::vector<std::byte> artefact(std::int64_t run, const std::string& name) const;

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace normscope::lab
