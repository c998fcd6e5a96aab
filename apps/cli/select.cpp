#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/selectability/select.hpp>

#include "command.hpp"
#include "inputs.hpp"
#include "key_certificates.hpp"
#include "key_norm.hpp"
#include "matrix_input.hpp"
#include "result_inputs.hpp"
#include "select_table.hpp"

namespace normscope::cli {
namespace {

using selectability::Proof;
using selectability::Selectability;

constexpr std::chrono::seconds search_saved_every{10};

struct SelectOptions {
  std::string input;
  KeyNormOptions norm;
  selectability::Options search;
  std::string certificates;
  std::string state;
  bool check = false;
  bool exact = false;
  bool random_table = false;
  selectability::RandomTable table{};
  std::string figures;
};

/// How many keys rational arithmetic decided, and why it left the first of the others undecided.
std::string exact_summary(const selectability::Selection& selection) {
  const std::size_t asked = selection.exact.size();
  const std::size_t decided = selection.count(Proof::exact);
  if (decided == asked) return fmt::format("decided exactly: {}", counted(asked, "key"));
  const auto open = std::find_if(selection.exact.begin(), selection.exact.end(), [](const auto& verdict) {
    return verdict.separation.answer == proof::Answer::undecided;
  });
  return fmt::format("decided exactly: {} of {}; key {}: {}", decided, counted(asked, "key"), open->key,
                     open->separation.reason);
}

/// Keys named in a list; the JSON has the answer for each.
constexpr std::size_t named_keys = 20;

/// "not selectable: 3, 17, 20 and 5 others", for the first of the keys with that answer.
void say_which(const Session& session, const selectability::Selection& selection, Selectability answer,
               const char* what) {
  std::string list;
  std::size_t count = 0;
  for (std::size_t i = 0; i < selection.keys.size(); ++i) {
    if (selection.keys[i].answer != answer || ++count > named_keys) continue;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", i);
  }
  if (count > named_keys) list += fmt::format(" and {}", counted(count - named_keys, "other"));
  if (count > 0) session.say(fmt::format("{}: {}", what, list));
}

void describe(const Session& session, const MatrixInput& keys, const selectability::Selection& selection,
              bool exact) {
  const std::size_t undecided = selection.count(Selectability::undecided);
  session.say(fmt::format("{} of width {}: {} selectable, {} not, {} undecided{}", counted(keys.rows, "key"),
                          keys.width, selection.count(Selectability::selectable),
                          selection.count(Selectability::unselectable), undecided,
                          undecided > 0 && !exact ? " (--exact decides them)" : ""));
  say_which(session, selection, Selectability::selectable, "selectable keys, by row from 0");
  say_which(session, selection, Selectability::unselectable, "keys that no query selects");
  say_which(session, selection, Selectability::undecided, "undecided keys");
  std::string proofs;
  for (const Proof proof : selectability::every_proof) {
    std::string name(to_string(proof));
    std::replace(name.begin(), name.end(), '_', ' ');
    const std::size_t number = selection.count(proof);
    if (number > 0) proofs += fmt::format("{}{} {}", proofs.empty() ? "" : ", ", name, number);
  }
  if (!proofs.empty()) session.say("proved by: " + proofs);
  if (exact) session.say(exact_summary(selection));
  if (const std::optional<selectability::Margins> margins = selection.margins()) {
    session.say(fmt::format("distance from the hull of the others, at least: {} (least), {} (median)",
                            at_least(margins->least, 4), at_least(margins->median, 4)));
  }
}

void save(const selectability::Search& search, const std::string& path) {
  AtomicFile file(path);
  file.write(search.state());
  file.commit();
}

/// Runs the search, which continues from and saves its state in the file of --resume.
selectability::Selection decide(const Session& session, const SelectOptions& options,
                                MatrixView<const double> keys, const selectability::Options& how) {
  const Progress progress = session.progress();
  selectability::Search search(keys, how);
  const std::string& state = options.state;
  if (!state.empty() && std::filesystem::exists(state)) {
    const MappedFile file(state);
    search.resume({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, state);
  }
  auto saved = std::chrono::steady_clock::now();
  try {
    while (!search.done()) {
      search.report(progress);
      search.step();
      if (!state.empty() && std::chrono::steady_clock::now() - saved >= search_saved_every) {
        save(search, state);
        saved = std::chrono::steady_clock::now();
      }
    }
    search.report(progress);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Cancelled && !state.empty()) save(search, state);
    throw;
  }
  if (!state.empty()) save(search, state);
  return std::move(search).result();
}

int run_select(const Session& session, const SelectOptions& options) {
  expect_folders({options.certificates, options.figures});
  if (options.input.empty() && !options.random_table) throw CLI::RequiredError("KEYS or --random-table");
  Inputs inputs;
  const KeyNorm norm = options.norm.open(inputs);
  if (options.random_table) return run_random_table(session, inputs, norm, options.table, options.figures);
  std::vector<std::string> outputs = certificate_files(options.certificates);
  outputs.push_back(session.json);
  outputs.push_back(options.state);
  const files::OpenedArray array = inputs.array(options.input);
  inputs.keep_apart(outputs);
  expect_writable({options.state});
  MatrixInput keys = read_matrix(array, Rows::any);
  const std::optional<GivenNorm> spec = norm.of_width(keys.width);
  verify::Inputs computed_from;
  if (session.wants_json()) {
    add_array(computed_from, "keys", array.name(), keys, session.threads);
    if (spec) add_norm(computed_from, options.norm.norm, *spec);
  }
  norm.apply(spec, {keys.values.data(), keys.rows, keys.width});
  selectability::Options search = options.search;
  search.threads = session.threads;
  selectability::Selection selection = decide(session, options, keys.view(), search);
  if (options.exact) {
    selectability::decide_exactly(keys.view(), selection, {}, session.threads, session.progress());
  }
  AtomicGroup together;
  write_certificates(options.certificates, keys.view(), selection);
  session.write_json(json_text(results::select(selection, {.width = keys.width,
                                                           .norm = norm.json(spec),
                                                           .exact = options.exact,
                                                           .inputs = computed_from,
                                                           .folder = options.certificates})));
  together.commit();
  if (spec) spec->say_source(session);
  describe(session, keys, selection, options.exact);
  return options.check && selection.count(Selectability::selectable) < keys.rows ? negative : ok;
}

}  // namespace

void add_select(CLI::App& root, Session& session) {
  const auto options = std::make_shared<SelectOptions>();
  CLI::App* command =
      add_command(root, session, "select", "Decide which keys some query can give the highest score",
                  [&session, options] { return run_select(session, *options); });
  command->footer(
      "A key counts as inside the hull of the others if its distance from it, relative to the extent of\n"
      "all keys, is below --tolerance, in total and in each column; with 0, only if that is proved.\n"
      "For float32 keys that lie in a subspace, use --rank-tolerance 1e-5. Ctrl-C saves the state of "
      "--resume.");
  CLI::Option* input = command->add_option(
      "KEYS", options->input, "Keys, one a row; normalized first if options of a norm are given");
  options->norm.declare(*command);
  command
      ->add_option(
          "--tolerance", options->search.tolerance,
          "Relative distance below which a key counts as inside the hull of the others (default 1e-12)")
      ->type_name("T")
      ->check(numbers(0.0, 1.0));
  command
      ->add_option("--rank-tolerance", options->search.rank_tolerance,
                   "Relative extent below which the keys count as flat in a direction (default 1e-12)")
      ->type_name("T")
      ->check(numbers(0.0, 1.0));
  command
      ->add_option(
          "--certificates", options->certificates,
          "Write the keys, and the query or weights that prove each answer, into FOLDER as .npy files")
      ->type_name("FOLDER");
  command
      ->add_option("--resume", options->state,
                   "Save decided keys in FILE and continue from it; answers of --exact are not saved")
      ->type_name("FILE");
  CLI::Option* exact = command->add_flag(
      "--exact", options->exact,
      "Decide in rational arithmetic, with integer certificates, the keys that floating point cannot");
  command->add_flag("--check", options->check, "Exit with status 1 unless every key is selectable");
  selectability::RandomTable& random = options->table;
  CLI::Option* table =
      command
          ->add_flag("--random-table", options->random_table,
                     "Tabulate how often standard normal keys cannot be selected, instead of KEYS")
          ->excludes(input)
          ->excludes(exact);
  command->add_option("--runs", random.runs, "Random key sets per table cell (default 100)")
      ->type_name("N")
      ->check(counts(1, largest_count))
      ->needs(table);
  command->add_option("--most-width", random.most_width, "Largest key width in the table (default 15)")
      ->type_name("N")
      ->check(counts(3, largest_count))
      ->needs(table);
  command->add_option("--most-keys", random.most_count, "Largest number of keys in the table (default 60)")
      ->type_name("N")
      ->check(counts(3, largest_count))
      ->needs(table);
  command->add_option("--seed", random.seed, "Random seed (default 1)")
      ->type_name("S")
      ->check(seeds())
      ->needs(table);
  command->add_option("--figures", options->figures, "Write the table's heat maps (Vega-Lite) into FOLDER")
      ->type_name("FOLDER")
      ->needs(table);
  add_examples(*command, {"normscope select models/wordlist_gpt:transformer.wte.weight",
                          "normscope select '0,0;2,0;0,2;0.5,0.5' --exact"});
}

}  // namespace normscope::cli
