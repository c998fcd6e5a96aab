#include "store.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <thread>
#include <utility>

#include <fmt/ranges.h>
#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>
#include <normscope/core/version.hpp>

#include "database.hpp"

namespace normscope::lab {
namespace {

/// What Linux calls the processor, or "unknown processor".
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

const std::string& this_machine() {
  static const std::string machine =
      processor() + ", " + counted(std::thread::hardware_concurrency(), "thread");
  return machine;
}

namespace {

constexpr std::int64_t application = 0x4e6f726d;  // "Norm"
constexpr std::int64_t layout = 3;

// `progress` is the state needed to continue from `step`; `token` identifies the owner until `expires`.
constexpr const char* tables = R"(
CREATE TABLE runs(
  id INTEGER PRIMARY KEY, experiment TEXT NOT NULL, configuration TEXT NOT NULL, seed INTEGER NOT NULL,
  state INTEGER NOT NULL DEFAULT 0, step INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
  version TEXT NOT NULL, token INTEGER NOT NULL DEFAULT 0, expires REAL NOT NULL DEFAULT 0,
  started REAL NOT NULL DEFAULT 0, seconds REAL NOT NULL DEFAULT 0, peak INTEGER NOT NULL DEFAULT 0,
  machine TEXT NOT NULL DEFAULT '', revision TEXT NOT NULL DEFAULT '',
  progress BLOB NOT NULL DEFAULT x'', UNIQUE(experiment, configuration, seed));
CREATE TABLE metrics(
  run INTEGER NOT NULL REFERENCES runs, step INTEGER NOT NULL, name TEXT NOT NULL, value REAL,
  PRIMARY KEY(run, step, name)) WITHOUT ROWID;
CREATE TABLE artefacts(
  run INTEGER NOT NULL REFERENCES runs, name TEXT NOT NULL, bytes BLOB NOT NULL,
  PRIMARY KEY(run, name)) WITHOUT ROWID;
)";

constexpr const char* origin_columns = R"(
ALTER TABLE runs ADD COLUMN seconds REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN peak INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN revision TEXT NOT NULL DEFAULT '';
)";

constexpr const char* rule_table = R"(
CREATE TABLE rules(
  experiment TEXT NOT NULL, claim TEXT NOT NULL, hash TEXT NOT NULL, text TEXT NOT NULL, written REAL NOT NULL,
  PRIMARY KEY(experiment, claim, hash));
)";

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Never 0, and different in two processes that start at the same instant.
std::uint64_t new_token() {
  std::random_device device;
  const std::uint64_t bits = std::uint64_t{device()} << 32U | device();
  return bits >> 1U | 1U;
}

/// As JSON, which SQLite can use as a table.
std::string list_of(std::span<const std::int64_t> numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

/// Whether the numbers are equal; NaN equals NaN.
bool same(std::span<const Metric> one, std::span<const Metric> other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](const Metric& a, const Metric& b) {
    return a.name == b.name && a.step == b.step &&
           (a.value == b.value || (std::isnan(a.value) && std::isnan(b.value)));
  });
}

std::int64_t pragma(Database& database, std::string_view name) {
  Statement statement = database.prepare(fmt::format("PRAGMA {}", name));
  return statement.step() ? statement.integer(0) : 0;
}

}  // namespace

struct Store::Connection {
  std::filesystem::path path;
  std::string name;
  mutable Database database;

  explicit Connection(const std::filesystem::path& file) : path(file), name(file.string()), database(file) {
    Transaction transaction(database);
    const std::int64_t marked = pragma(database, "application_id");
    const std::int64_t version_there = pragma(database, "user_version");
    Statement any = database.prepare("SELECT count(*) FROM sqlite_master");
    any.step();
    if (any.integer(0) == 0 && marked == 0) {
      database.execute(tables);
      database.execute(rule_table);
      database.execute(fmt::format("PRAGMA application_id={}", application).c_str());
      database.execute(fmt::format("PRAGMA user_version={}", layout).c_str());
    } else if (marked != application) {
      throw Error(ErrorCode::Format, fmt::format("run store: {}: is a database of another program", name));
    } else if (version_there < 1 || version_there > layout) {
      throw Error(ErrorCode::Format,
                  fmt::format("run store: {}: has layout {}, expected 1 to {}", name, version_there, layout));
    } else if (version_there < layout) {
      if (version_there < 2) {
        // Its runs are older than every rule.
        database.execute("ALTER TABLE runs ADD COLUMN started REAL NOT NULL DEFAULT 0");
        database.execute(rule_table);
      }
      database.execute(origin_columns);
      database.execute(fmt::format("PRAGMA user_version={}", layout).c_str());
    }
    transaction.commit();
  }

  void add_metrics(const Lease& lease, std::uint64_t step, std::span<const Metric> metrics) {
    Statement insert = database.prepare("INSERT INTO metrics(run, step, name, value) VALUES(?, ?, ?, ?)");
    for (const Metric& metric : metrics) {
      // Measurements before the saved step are stored already; later ones would be measured again.
      if (metric.step < lease.step || metric.step > step) {
        throw Error(ErrorCode::Argument,
                    fmt::format("run store: metric {} of step {} lies outside the steps {} to {} "
                                "that are saved with it",
                                metric.name, metric.step, lease.step, step));
      }
      insert.bind(lease.run)
          .bind(static_cast<std::int64_t>(metric.step))
          .bind(std::string_view(metric.name))
          .bind(metric.value);
      insert.run();
    }
  }

  bool insert(const StoredRule& rule, double written) {
    Statement statement = database.prepare(
        "INSERT INTO rules(experiment, claim, hash, text, written) VALUES(?, ?, ?, ?, ?) ON CONFLICT DO "
        "NOTHING");
    statement.bind(std::string_view(rule.experiment)).bind(std::string_view(rule.claim));
    statement.bind(std::string_view(rule.hash)).bind(std::string_view(rule.text)).bind(written).run();
    return database.changes() == 1;
  }

  /// Id and state of a run that is there.
  std::pair<std::int64_t, RunState> find(const RunKey& run, std::string_view configuration) {
    Statement row = database.prepare(
        "SELECT id, state FROM runs WHERE experiment = ? AND configuration = ? AND seed = ?");
    row.bind(std::string_view(run.experiment)).bind(configuration);
    row.bind(static_cast<std::int64_t>(run.seed)).step();
    return {row.integer(0), static_cast<RunState>(row.integer(1))};
  }

  /// The key in three columns from `first` on: experiment, configuration, seed.
  [[nodiscard]] RunKey key(const Statement& row, int first) const {
    RunKey key{row.text(first), {}, static_cast<std::uint64_t>(row.integer(first + 2))};
    key.configuration = nlohmann::ordered_json::parse(row.text(first + 1), nullptr, false);
    if (!key.configuration.is_object()) {
      throw Error(ErrorCode::Format,
                  fmt::format("run store: {}: a run of {} has the configuration {}, expected "
                              "a JSON object",
                              name, key.experiment, row.text(first + 1)));
    }
    return key;
  }

  /// Checks an update that names run and token.
  void expect_held(const Lease& lease) const {
    if (database.changes() != 1) {
      throw Error(ErrorCode::Argument,
                  fmt::format("run store: {}: run {} was taken over by another process", name, lease.run));
    }
  }
};

Store::Store(const std::filesystem::path& file) : connection_(std::make_unique<Connection>(file)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

const std::filesystem::path& Store::file() const { return connection_->path; }

std::vector<std::int64_t> Store::add(std::span<const RunKey> runs) {
  Transaction transaction(connection_->database);
  std::vector<std::int64_t> ids;
  Statement insert = connection_->database.prepare(
      "INSERT INTO runs(experiment, configuration, seed, version) VALUES(?, ?, ?, ?) ON CONFLICT DO NOTHING");
  for (const RunKey& run : runs) {
    const std::string configuration = run.configuration.dump();
    insert.bind(std::string_view(run.experiment)).bind(std::string_view(configuration));
    insert.bind(static_cast<std::int64_t>(run.seed)).bind(version);
    insert.run();
    ids.push_back(connection_->find(run, configuration).first);
  }
  transaction.commit();
  return ids;
}

void Store::write_rules(std::span<const StoredRule> rules) {
  Transaction transaction(connection_->database);
  for (const StoredRule& rule : rules) connection_->insert(rule, now());
  transaction.commit();
}

std::vector<StoredRule> Store::rules(const std::string& experiment) const {
  Statement rows = connection_->database.prepare(
      "SELECT experiment, claim, hash, text, written FROM rules WHERE experiment = ? ORDER BY written, "
      "rowid");
  rows.bind(std::string_view(experiment));
  std::vector<StoredRule> result;
  while (rows.step())
    result.push_back({rows.text(0), rows.text(1), rows.text(2), rows.text(3), rows.number(4)});
  return result;
}

void Store::together(const std::function<void()>& write) {
  Transaction transaction(connection_->database);
  write();
  transaction.commit();
}

bool Store::import_rule(const StoredRule& rule) { return connection_->insert(rule, rule.written); }

bool Store::import_run(const RunInfo& run, std::span<const Metric> metrics) {
  Database& database = connection_->database;
  Transaction transaction(database);
  const std::string configuration = run.key.configuration.dump();
  Statement insert = database.prepare(
      "INSERT INTO runs(experiment, configuration, seed, version, state, step, attempts, started, seconds, "
      "peak, machine, revision) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING "
      "id");
  insert.bind(std::string_view(run.key.experiment)).bind(std::string_view(configuration));
  insert.bind(static_cast<std::int64_t>(run.key.seed)).bind(std::string_view(run.version));
  insert.bind(std::int64_t{static_cast<int>(RunState::done)}).bind(static_cast<std::int64_t>(run.step));
  insert.bind(static_cast<std::int64_t>(run.attempts)).bind(run.started).bind(run.seconds);
  insert.bind(static_cast<std::int64_t>(run.peak)).bind(std::string_view(run.machine));
  insert.bind(std::string_view(run.revision));
  const bool added = insert.step();
  if (added) {
    Lease whole{.run = insert.integer(0)};
    connection_->add_metrics(whole, run.step, metrics);
  } else {
    const auto [id, state] = connection_->find(run.key, configuration);
    if (state != RunState::done || !same(this->metrics(id), metrics)) {
      throw Error(ErrorCode::Argument,
                  fmt::format("run store: {}: has another run of {} with seed {} and {}", connection_->name,
                              run.key.experiment, run.key.seed, configuration));
    }
  }
  // A statement that still has a row would keep the transaction open.
  while (added && insert.step()) {
  }
  transaction.commit();
  return added;
}

std::optional<Lease> Store::lease(std::span<const std::int64_t> runs, double seconds,
                                  const std::string& device) {
  NORMSCOPE_ASSERT(seconds > 0);
  Database& database = connection_->database;
  Transaction transaction(database);
  Statement free = database.prepare(
      "SELECT runs.id, experiment, configuration, seed, step, progress FROM runs "
      "JOIN json_each(?) AS wanted ON runs.id = wanted.value "
      "WHERE state <> ? AND (state = ? OR expires < ?) ORDER BY wanted.key LIMIT 1");
  free.bind(std::string_view(list_of(runs))).bind(std::int64_t{static_cast<int>(RunState::done)});
  free.bind(std::int64_t{static_cast<int>(RunState::waiting)}).bind(now());
  if (!free.step()) return std::nullopt;
  Lease lease{.run = free.integer(0),
              .token = new_token(),
              .key = connection_->key(free, 1),
              .step = static_cast<std::uint64_t>(free.integer(4)),
              .progress = free.bytes(5)};
  Statement take = database.prepare(
      "UPDATE runs SET state = ?, token = ?, expires = ?, attempts = attempts + 1, "
      "started = CASE attempts WHEN 0 THEN ? ELSE started END, machine = ?, revision = ? WHERE id = ?");
  take.bind(std::int64_t{static_cast<int>(RunState::leased)}).bind(static_cast<std::int64_t>(lease.token));
  take.bind(now() + seconds).bind(now());
  const std::string machine = this_machine() + (device.empty() ? "" : ", " + device);
  take.bind(std::string_view(machine)).bind(source_revision()).bind(lease.run);
  take.run();
  transaction.commit();
  return lease;
}

std::size_t Store::open(std::span<const std::int64_t> runs) const {
  Statement count = connection_->database.prepare(
      "SELECT count(*) FROM runs WHERE state <> ? AND id IN (SELECT value FROM json_each(?))");
  count.bind(std::int64_t{static_cast<int>(RunState::done)}).bind(std::string_view(list_of(runs))).step();
  return static_cast<std::size_t>(count.integer(0));
}

void Store::save(Lease& lease, std::uint64_t step, std::span<const Metric> metrics,
                 std::span<const std::byte> progress, double seconds) {
  Transaction transaction(connection_->database);
  Statement update = connection_->database.prepare(
      "UPDATE runs SET step = ?, progress = ?, expires = ?, seconds = seconds + ?, peak = max(peak, ?) "
      "WHERE id = ? AND token = ?");
  update.bind(static_cast<std::int64_t>(step)).bind(progress).bind(now() + seconds);
  update.bind(lease.spent.seconds).bind(static_cast<std::int64_t>(lease.spent.peak));
  update.bind(lease.run).bind(static_cast<std::int64_t>(lease.token)).run();
  connection_->expect_held(lease);
  connection_->add_metrics(lease, step, metrics);
  transaction.commit();
  lease.step = step;
  lease.spent = {};
}

void Store::finish(const Lease& lease, std::uint64_t step, std::span<const Metric> metrics) {
  Transaction transaction(connection_->database);
  Statement update = connection_->database.prepare(
      "UPDATE runs SET state = ?, step = ?, progress = x'', token = 0, seconds = seconds + ?, "
      "peak = max(peak, ?) WHERE id = ? AND token = ?");
  update.bind(std::int64_t{static_cast<int>(RunState::done)}).bind(static_cast<std::int64_t>(step));
  update.bind(lease.spent.seconds).bind(static_cast<std::int64_t>(lease.spent.peak));
  update.bind(lease.run).bind(static_cast<std::int64_t>(lease.token)).run();
  connection_->expect_held(lease);
  connection_->add_metrics(lease, step, metrics);
  transaction.commit();
}

bool Store::renew(const Lease& lease, double seconds) {
  Statement update = connection_->database.prepare("UPDATE runs SET expires = ? WHERE id = ? AND token = ?");
  update.bind(now() + seconds).bind(lease.run).bind(static_cast<std::int64_t>(lease.token)).run();
  return connection_->database.changes() == 1;
}

void Store::release(const Lease& lease) {
  Statement update =
      connection_->database.prepare("UPDATE runs SET state = ?, token = 0 WHERE id = ? AND token = ?");
  update.bind(std::int64_t{static_cast<int>(RunState::waiting)}).bind(lease.run);
  update.bind(static_cast<std::int64_t>(lease.token)).run();
}

void Store::keep(const Lease& lease, const std::string& name, std::span<const std::byte> bytes) {
  Transaction transaction(connection_->database);
  Statement held = connection_->database.prepare("UPDATE runs SET token = token WHERE id = ? AND token = ?");
  held.bind(lease.run).bind(static_cast<std::int64_t>(lease.token)).run();
  connection_->expect_held(lease);
  Statement insert =
      connection_->database.prepare("INSERT OR REPLACE INTO artefacts(run, name, bytes) VALUES(?, ?, ?)");
  insert.bind(lease.run).bind(std::string_view(name)).bind(bytes).run();
  transaction.commit();
}

std::vector<RunInfo> Store::runs(const std::string& experiment) const {
  Statement rows = connection_->database.prepare(
      "SELECT id, experiment, configuration, seed, state, step, version, attempts, started, seconds, peak, "
      "machine, revision FROM runs WHERE ?1 = '' OR experiment = ?1 ORDER BY id");
  rows.bind(std::string_view(experiment));
  std::vector<RunInfo> result;
  while (rows.step()) {
    result.push_back({.id = rows.integer(0),
                      .key = connection_->key(rows, 1),
                      .state = static_cast<RunState>(rows.integer(4)),
                      .step = static_cast<std::uint64_t>(rows.integer(5)),
                      .version = rows.text(6),
                      .attempts = static_cast<std::size_t>(rows.integer(7)),
                      .started = rows.number(8),
                      .seconds = rows.number(9),
                      .peak = static_cast<std::uint64_t>(rows.integer(10)),
                      .machine = rows.text(11),
                      .revision = rows.text(12)});
  }
  return result;
}

std::vector<Metric> Store::metrics(std::int64_t run) const {
  Statement rows = connection_->database.prepare(
      "SELECT name, step, value FROM metrics WHERE run = ? ORDER BY step, name");
  rows.bind(run);
  std::vector<Metric> result;
  while (rows.step()) {
    result.push_back({rows.text(0), static_cast<std::uint64_t>(rows.integer(1)), rows.number(2)});
  }
  return result;
}

std::vector<std::string> Store::artefacts(std::int64_t run) const {
  Statement rows = connection_->database.prepare("SELECT name FROM artefacts WHERE run = ? ORDER BY name");
  rows.bind(run);
  std::vector<std::string> result;
  while (rows.step()) result.push_back(rows.text(0));
  return result;
}

std::vector<std::byte> Store::artefact(std::int64_t run, const std::string& name) const {
  Statement rows = connection_->database.prepare("SELECT bytes FROM artefacts WHERE run = ? AND name = ?");
  rows.bind(run).bind(std::string_view(name));
  if (!rows.step()) {
    throw Error(ErrorCode::Argument,
                fmt::format("run store: {}: run {} has no \"{}\"", connection_->name, run, name));
  }
  return rows.bytes(0);
}

}  // namespace normscope::lab
