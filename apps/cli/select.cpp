#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>
#include <normscope/geometry/steps.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/selectability/select.hpp>

#include "command.hpp"
#include "key_certificates.hpp"
#include "matrix_input.hpp"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;
using selectability::Answer;
using selectability::Proof;

struct Options {
  std::string input;
  NormOptions norm;
  std::vector<std::string> steps;
  selectability::Options search;
  std::string certificates;
  bool check = false;
  /// Whether any option of a norm was given: without one, keys are taken as they are.
  std::function<bool()> normed;
};

/// The norm the keys go through, or none.
std::optional<NormSpec> transform(const Options& options, MatrixInput& keys) {
  if (!options.normed()) return std::nullopt;
  const NormSpec spec = options.norm.read(keys.width);
  const MatrixView<double> x(keys.values.data(), keys.rows, keys.width);
  if (options.steps.empty()) norm::forward(spec, x, x);
  for (const std::string& step : options.steps) geometry::apply(geometry::step(step), spec, x, x);
  return spec;
}

Json norm_json(const Options& options, const std::optional<NormSpec>& spec) {
  if (!spec) return nullptr;
  return {{"kind", std::string(to_string(spec->kind))},
          {"steps", options.steps.empty() ? std::vector<std::string>{"project", "scale", "stretch", "shift"}
                                          : options.steps},
          {"groups", spec->groups},
          {"eps", spec->eps}};
}

std::vector<std::size_t> rows_with(const selectability::Selection& selection, Answer answer) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < selection.keys.size(); ++i) {
    if (selection.keys[i].answer == answer) result.push_back(i);
  }
  return result;
}

std::size_t count(const selectability::Selection& selection, Proof proof) {
  return static_cast<std::size_t>(
      std::count_if(selection.keys.begin(), selection.keys.end(),
                    [proof](const selectability::Verdict& verdict) { return verdict.proof == proof; }));
}

/// Margins of the selectable keys; null where none has a finite one.
Json margins_json(const selectability::Selection& selection) {
  std::vector<double> margins;
  for (const selectability::Verdict& verdict : selection.keys) {
    if (verdict.answer == Answer::selectable && std::isfinite(verdict.margin))
      margins.push_back(verdict.margin);
  }
  if (margins.empty()) return nullptr;
  std::sort(margins.begin(), margins.end());
  return {{"least", margins.front()}, {"median", margins[margins.size() / 2]}, {"largest", margins.back()}};
}

Json to_json(const Options& options, const std::optional<NormSpec>& spec, const MatrixInput& keys,
             const selectability::Selection& selection) {
  return {{"schema", "normscope.select/1"},
          {"version", version},
          {"keys", keys.rows},
          {"width", keys.width},
          {"norm", norm_json(options, spec)},
          {"selectable", selection.count(Answer::selectable)},
          {"unselectable", rows_with(selection, Answer::unselectable)},
          {"undecided", rows_with(selection, Answer::undecided)},
          {"proofs",
           {{"alone", count(selection, Proof::alone)},
            {"own_direction", count(selection, Proof::own_direction)},
            {"query", count(selection, Proof::query)},
            {"weights", count(selection, Proof::weights)},
            {"twin", count(selection, Proof::twin)}}},
          {"margin", margins_json(selection)},
          {"scale", selection.scale},
          {"tolerance", selection.tolerance}};
}

void describe(const Session& session, const MatrixInput& keys, const selectability::Selection& selection) {
  session.say(fmt::format("{} of width {}: {} selectable, {} not, {} undecided", counted(keys.rows, "key"),
                          keys.width, selection.count(Answer::selectable),
                          selection.count(Answer::unselectable), selection.count(Answer::undecided)));
  std::string proofs;
  for (const Proof proof : {Proof::alone, Proof::own_direction, Proof::query, Proof::weights, Proof::twin}) {
    const std::size_t number = count(selection, proof);
    if (number > 0) proofs += fmt::format("{}{} {}", proofs.empty() ? "" : ", ", to_string(proof), number);
  }
  if (!proofs.empty()) session.say("proved by: " + proofs);
  const Json margin = margins_json(selection);
  if (!margin.is_null()) {
    session.say(fmt::format("distance from the hull of the others, at least: {:.4g} (least), {:.4g} (median)",
                            margin["least"].get<double>(), margin["median"].get<double>()));
  }
}

int run(const Session& session, const Options& options) {
  std::vector<std::string> outputs = certificate_files(options.certificates);
  outputs.push_back(session.json);
  keep_apart(files_of_arrays({options.input, options.norm.gain, options.norm.bias}), outputs);
  MatrixInput keys = read_matrix(options.input, Rows::any);
  const std::optional<NormSpec> spec = transform(options, keys);
  selectability::Options search = options.search;
  search.threads = session.threads;
  const selectability::Selection selection = selectability::keys(keys.view(), search, session.progress());
  JsonOutput machine_form(session, to_json(options, spec, keys, selection).dump());
  write_certificates(options.certificates, keys.view(), selection);
  machine_form.commit();
  describe(session, keys, selection);
  return options.check && selection.count(Answer::selectable) < keys.rows ? negative : ok;
}

}  // namespace

void add_select(CLI::App& root, Session& session) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(root, session, "select", "Which keys some query can give the highest score",
                                  [&session, options] { return run(session, *options); });
  command->add_option("KEYS", options->input, "Keys x width, as they are or as --norm, --step make them")
      ->required();
  options->norm.declare(*command);
  command->add_option("--step", options->steps, "Of the norm, only these steps (project,scale,stretch,shift)")
      ->type_name("S1,S2,...")
      ->delimiter(',')
      ->check(CLI::IsMember({"project", "scale", "stretch", "shift"}));
  command
      ->add_option("--tolerance", options->search.tolerance,
                   "Distance from the others' hull, in parts of the keys' extent, that counts as none "
                   "(default 1e-12)")
      ->type_name("T")
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--rank-tolerance", options->search.rank_tolerance,
                   "Extent of the keys along a direction, in parts of the largest, that counts as none "
                   "(default 1e-12; 1e-5 for keys that a projection left in float32)")
      ->type_name("T")
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--certificates", options->certificates,
                   "Write the keys, and of each its query or its weights, into FOLDER as .npy files")
      ->type_name("FOLDER");
  command->add_flag("--check", options->check, "Exit with 1 unless every key is selectable");
  options->normed = [command] {
    for (const char* name : {"--norm", "--gain", "--bias", "--groups", "--eps", "--step"}) {
      if (command->count(name) > 0) return true;
    }
    return false;
  };
}

}  // namespace normscope::cli
