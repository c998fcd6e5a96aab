#include <filesystem>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/version.hpp>
#include <normscope/lnnet/experiments.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string name;
  std::string figure;
};

Json about(const lnnet::Experiment& experiment) {
  return {{"name", std::string(experiment.name)},
          {"paper", std::string(experiment.paper)},
          {"claim", std::string(experiment.claim)},
          {"expected", std::string(experiment.expected)}};
}

int list(const Session& session) {
  Json all = Json::array();
  for (const lnnet::Experiment& experiment : lnnet::experiments()) all.push_back(about(experiment));
  const Json json = {{"schema", "normscope.lab/1"}, {"version", version}, {"experiments", all}};
  session.write_json(json_text(json));
  for (const lnnet::Experiment& experiment : lnnet::experiments()) {
    session.say(fmt::format("{:<8} {}: {}", experiment.name, experiment.paper, experiment.claim));
  }
  return ok;
}

int run(const Session& session, const Options& options) {
  const lnnet::Experiment* experiment = lnnet::find_experiment(options.name);
  if (experiment == nullptr) {
    throw Error(ErrorCode::Argument,
                fmt::format("lab: \"{}\" is no experiment, expected one of normscope lab list",
                            printable(options.name)));
  }
  expect_writable({options.figure});
  keep_apart({}, {options.figure, session.json});
  const lnnet::Outcome outcome = experiment->run();
  Json entry = about(*experiment);
  entry["ours"] = outcome.ours;
  entry["holds"] = outcome.holds;
  const Json json = {
      {"schema", "normscope.lab/1"}, {"version", version}, {"experiments", Json::array({entry})}};
  JsonOutput machine_form(session, json_text(json));
  if (!options.figure.empty()) {
    AtomicFile file(options.figure);
    file.write(outcome.figure);
    file.write("\n");
    file.commit();
  }
  machine_form.commit();
  session.say(fmt::format("{}\nexpected: {}\nours: {}\n{}", experiment->claim, experiment->expected,
                          outcome.ours, outcome.holds ? "holds" : "does not hold"));
  return outcome.holds ? ok : negative;
}

}  // namespace

void add_lab(CLI::App& root, Session& session) {
  CLI::App* lab = root.add_subcommand("lab", "The papers' experiments that train nothing");
  lab->require_subcommand(1);
  CLI::App* names = add_command(*lab, session, "list", "Name them", [&session] { return list(session); });
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(*lab, session, "run", "Run one, and see whether its claim holds",
                                  [&session, options] { return run(session, *options); });
  command->add_option("NAME", options->name, "An experiment of the list")->required();
  command->add_option("-o,--output", options->figure, "Write its figure (Vega-Lite)")
      ->type_name("FIGURE.vl.json");
  // Small enough to take one thread.
  for (CLI::App* part : {names, command}) part->remove_option(part->get_option("--threads"));
}

}  // namespace normscope::cli
