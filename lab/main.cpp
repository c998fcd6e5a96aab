#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/text.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/lab.hpp>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "frame/experiment.hpp"
#include "frame/lines.hpp"
#include "frame/plan.hpp"
#include "frame/show.hpp"
#include "frame/work.hpp"
#include "list_command.hpp"
#include "outputs.hpp"
#include "ranks.hpp"
#include "session.hpp"
#include "torch/device.hpp"

namespace {

using namespace normscope;
using namespace normscope::lab;
using cli::Outputs;
using cli::Session;

struct Options {
  std::string name;
  std::vector<std::string> names;
  std::string store = "normscope-lab.sqlite";
  bool quick = false;
  std::size_t seeds = 0;
  std::string sweep;
  double lease_seconds = 30.0;
  std::string device = "cpu";
  std::string folder;
  bool markdown = false;
  std::string format = "csv";
  std::string output;
  std::vector<std::string> files;

  [[nodiscard]] Size size() const { return quick ? Size::quick : Size::full; }
  [[nodiscard]] std::vector<RunKey> runs_of(const Experiment& experiment) const {
    return planned(experiment, size(), seeds,
                   sweep.empty() ? std::nullopt : std::optional(read_sweep(sweep)));
  }
};

const Experiment& named(const std::string& name) {
  if (const Experiment* experiment = find_experiment(name)) return *experiment;
  throw Error(ErrorCode::Argument, fmt::format("unknown experiment \"{}\"; normscope lab list names them all",
                                               cli::printable(name)));
}

/// Requires that a store that is only read exists.
Store existing(const std::string& file) {
  if (!std::filesystem::exists(file)) {
    throw Error(ErrorCode::Io,
                fmt::format("{}: does not exist, expected a run store that normscope lab run wrote (--store)",
                            cli::printable(file)));
  }
  return Store(file);
}

/// Refuses an experiment that this program or the device cannot compute.
void expect_backend(const Experiment& experiment, const std::string& device) {
  if (experiment.backend != Backend::own && !has_torch()) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("lab: libtorch computes {}, expected the program normscope-lab, which starts the one "
                    "that has it",
                    experiment.name));
  }
  if (device != "cpu" && experiment.backend != Backend::torch_or_gpu) {
    throw Error(ErrorCode::Argument,
                fmt::format("lab: only the processor computes {}, expected --device cpu", experiment.name));
  }
  expect_device(device);
}

/// Prints the results in the store, and writes JSON and figures.
int tell(const Session& session, const Options& options, Outputs& outputs,
         const std::vector<ExperimentResult>& accounts) {
  std::vector<results::LabExperiment> experiments;
  for (const ExperimentResult& account : accounts) experiments.push_back(entry(account));
  outputs.write(options.folder, [&](const std::string& folder) {
    std::filesystem::create_directories(folder);
    for (const ExperimentResult& account : accounts) write_figures(account, folder);
  });
  outputs.commit([&] { return json_text(results::lab(experiments)); });
  int status = cli::ok;
  for (const ExperimentResult& account : accounts) {
    session.say(options.markdown ? to_markdown(account, "images") : to_text(account));
    if (account.count(Outcome::not_reproduced) > 0) status = cli::negative;
  }
  return status;
}

int list(const Session& session) {
  std::vector<results::LabExperiment> all;
  for (const Experiment* experiment : all_experiments()) all.push_back(about(*experiment));
  Outputs outputs(session);
  outputs.expect_writable();
  outputs.commit([&] { return json_text(results::lab(all)); });
  for (const Experiment* experiment : all_experiments()) {
    session.say(fmt::format("{:<24} {:<14} {} (quick {:.0f} s, full {:.0f} min)", experiment->name,
                            experiment->paper, experiment->claim, experiment->quick_seconds,
                            experiment->full_minutes));
  }
  return cli::ok;
}

int run(const Session& session, const Options& options, const Ranks& ranks) {
  const Experiment& experiment = named(options.name);
  expect_backend(experiment, options.device);
  Outputs outputs(session);
  outputs.add_folder(options.folder);
  outputs.expect_writable();
  outputs.protect(options.store);
  if (!options.sweep.empty()) outputs.protect(options.sweep);
  Work the_work{.experiment = &experiment,
                .store = options.store,
                .lease_seconds = options.lease_seconds,
                .device = options.device};
  const std::vector<RunKey> keys = options.runs_of(experiment);
  // The first process creates the file; the others find it.
  ranks.first_then_all([&] {
    Store created(options.store);
    created.write_rules(rules_of(experiment));
    the_work.runs = created.add(keys);
  });
  if (!ranks.is_first()) the_work.runs = Store(options.store).add(keys);
  const auto processes = static_cast<unsigned>(
      std::min<std::size_t>(ranks.size() > 1 ? 1 : thread_count(session.threads), keys.size()));
  const Progress progress = session.progress();
  if (processes <= 1) {
    work(the_work, progress);
  } else {
    work_in_processes(the_work, processes, progress);
  }
  ranks.meet();
  if (!ranks.is_first()) return cli::ok;
  const Store store(options.store);
  if (!options.sweep.empty()) {
    session.say(fmt::format("{} of the sweep done; normscope lab export {} writes their numbers",
                            counted(keys.size(), "run"), experiment.name));
  }
  return tell(session, options, outputs, {account(store, experiment, options.size())});
}

int plan(const Session& session, const Options& options) {
  const Experiment& experiment = named(options.name);
  const std::vector<RunKey> keys = options.runs_of(experiment);
  std::optional<Store> store;
  if (std::filesystem::exists(options.store)) store.emplace(options.store);
  const Forecast expected = forecast(store ? &*store : nullptr, experiment, options.size(), keys);
  session.say(to_text(expected, experiment, options.size(), thread_count(session.threads)));
  return cli::ok;
}

int show(const Session& session, const Options& options) {
  std::vector<const Experiment*> experiments;
  for (const std::string& name : options.names) experiments.push_back(&named(name));
  Outputs outputs(session);
  outputs.add_folder(options.folder);
  outputs.expect_writable();
  const Store store = existing(options.store);
  std::vector<ExperimentResult> accounts;
  for (const Experiment* experiment : experiments)
    accounts.push_back(account(store, *experiment, options.size()));
  return tell(session, options, outputs, accounts);
}

int export_runs(const Session& session, const Options& options) {
  const Experiment& experiment = named(options.name);
  Outputs outputs(session);
  outputs.add_file(options.output);
  outputs.expect_writable();
  outputs.protect(options.store);
  const Store store = existing(options.store);
  const std::string text =
      options.format == "runs"
          ? run_lines(store, experiment)
          : exported(store, experiment, options.format == "csv" ? TableFormat::csv : TableFormat::json_lines);
  if (text.empty()) {
    throw Error(ErrorCode::Argument, fmt::format("{}: holds no run of {} to export",
                                                 cli::printable(options.store), experiment.name));
  }
  outputs.write_text(options.output, [&] { return text; });
  outputs.commit([] { return std::string(); });
  session.say(fmt::format("wrote {}", cli::printable(options.output)));
  return cli::ok;
}

int import_runs(const Session& session, const Options& options) {
  Outputs replaced(session);
  replaced.add_own(options.store);
  for (const std::string& file : options.files) replaced.protect(file);
  Store store(options.store);
  for (const std::string& file : options.files) {
    const Imported imported = import_lines(store, file);
    session.say(fmt::format("{}: added {} and {}", cli::printable(file), counted(imported.runs, "run"),
                            counted(imported.rules, "rule")));
  }
  return cli::ok;
}

void add_store(CLI::App& command, Options& options) {
  command.add_option("--store", options.store, "SQLite file of all runs (default normscope-lab.sqlite)")
      ->type_name("FILE");
}

void add_name(CLI::App& command, Options& options) {
  command.add_option("NAME", options.name, "Name of the experiment (see list)")->required();
}

void add_size(CLI::App& command, Options& options) {
  command.add_flag("--quick", options.quick,
                   "Use the small size, which takes seconds; every verdict is then inconclusive");
}

void add_seeds(CLI::App& command, Options& options) {
  command.get_option("--threads")->description("Number of processes, one thread each (default: all cores)");
  command.add_option("--runs", options.seeds, "Seeds for each configuration (default: the experiment's own)")
      ->type_name("N")
      ->check(cli::counts(1, cli::largest_count));
  command.add_option("--sweep", options.sweep, "JSON file of configurations and seeds to run instead")
      ->type_name("FILE");
}

/// Errors    Usage for other text than cpu, cuda and cuda:INDEX
CLI::Validator devices() {
  return {[](std::string& text) {
            const std::string_view prefix = "cuda:";
            const std::size_t digits = text.starts_with(prefix) ? text.size() - prefix.size() : 0;
            const bool indexed = digits >= 1 && digits <= 3 &&
                                 text.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
            return text == "cpu" || text == "cuda" || indexed ? std::string()
                                                              : "expected cpu, cuda or cuda:INDEX";
          },
          ""};
}

void add_folder(CLI::App& command, Options& options) {
  command.add_option("-o,--output", options.folder, "Write the figures (Vega-Lite) into FOLDER")
      ->type_name("FOLDER");
  command.add_flag("--markdown", options.markdown, "Print the results as Markdown");
}

int main_program(int argc, char** argv, const Ranks& ranks) {
  Session session;
  Options options;
  CLI::App root(description, "normscope-lab");
  root.require_subcommand(1);
  add_list(root, session, [&] { return list(session); });
  CLI::App* runs = cli::add_command(root, session, "run", "Run an experiment; interrupted runs continue",
                                    [&] { return run(session, options, ranks); });
  CLI::App* plans = cli::add_command(
      root, session, "plan", "Show what the runs of an experiment will take: runs, core hours, memory",
      [&] { return plan(session, options); });
  CLI::App* shows =
      cli::add_command(root, session, "show", "Show the results of the runs of one experiment or several",
                       [&] { return show(session, options); });
  CLI::App* exports =
      cli::add_command(root, session, "export", "Write every number of an experiment's runs as a table",
                       [&] { return export_runs(session, options); });
  CLI::App* imports = cli::add_command(root, session, "import", "Add exported rules and runs to a store",
                                       [&] { return import_runs(session, options); });
  imports->add_option("FILES", options.files, "Files that lab export --format runs wrote")->required();
  shows->add_option("NAMES", options.names, "Names of experiments (see list)")->required();
  for (CLI::App* command : {runs, plans, exports}) add_name(*command, options);
  for (CLI::App* command : {runs, plans, shows, exports, imports}) add_store(*command, options);
  for (CLI::App* command : {runs, plans, shows}) add_size(*command, options);
  for (CLI::App* command : {runs, shows}) add_folder(*command, options);
  for (CLI::App* command : {runs, plans}) add_seeds(*command, options);
  for (CLI::App* command : {shows, exports, imports})
    command->remove_option(command->get_option("--threads"));
  for (CLI::App* command : {plans, exports, imports}) command->remove_option(command->get_option("--json"));
  runs->add_option("--lease", options.lease_seconds,
                   "Seconds without a heartbeat after which another process takes over a run (default 30)")
      ->type_name("S")
      ->check(cli::numbers(0.1, 86400.0));
  runs->add_option("--device", options.device,
                   "Device that computes the networks: cpu (default), cuda or cuda:INDEX (see lab/README.md)")
      ->type_name("DEVICE")
      ->check(devices());
  exports->add_option("-o,--output", options.output, "File to write")->type_name("FILE")->required();
  exports
      ->add_option("--format", options.format,
                   "Number a row: csv (default) or jsonl; or rules and completed runs for lab import: runs")
      ->check(CLI::IsMember({"csv", "jsonl", "runs"}));
  cli::add_examples(*runs, {"normscope lab run brody-majority --quick"});
  cli::add_examples(*plans, {"normscope lab plan brody-majority"});
  cli::add_examples(*shows, {"normscope lab show brody-majority --quick",
                             "normscope lab show riechers-geometry winsor-fold"});
  cli::add_examples(*exports, {"normscope lab export brody-majority -o numbers.csv"});
  cli::add_examples(*imports, {"normscope lab import docs/results/runs/brody-exact.jsonl"});
  return cli::parse_and_run(root, session, argc, argv);
}

/// Keeps freed memory for the next tensor of that size: a step of a training allocates the same tensors as
/// the one before, and a convolution net spends half of its time in page faults when each is mapped anew.
void keep_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_memory();
  const Ranks ranks;
  const int status = cli::guarded("normscope-lab", [&] { return main_program(argc, argv, ranks); });
  // Other processes that wait for this one would otherwise wait for ever.
  if (status != cli::ok && status != cli::negative) ranks.end_all(status);
  return status;
}
