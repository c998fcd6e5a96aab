#include <algorithm>
#include <chrono>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/selectability/select.hpp>

#include "norm_options.hpp"

namespace normscope::cli {
namespace {

using selectability::Proof;
using selectability::RandomCell;
using selectability::Selectability;

constexpr std::chrono::seconds search_saved_every{10};

/// The files of --certificates.
constexpr std::initializer_list<const char*> certificate_names = {
    "keys", "selectable", "queries", "margins", "unselectable", "residuals", "weights"};

/// A file of --figures, and what it shows.
struct Figure {
  const char* file;
  double RandomCell::*share;
  const char* title;
};
constexpr Figure table_figures[] = {
    {"any.vl.json", &RandomCell::any, "Sets of random keys with one that no query selects"},
    {"mean.vl.json", &RandomCell::mean, "Mean share of random keys that no query selects"}};

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

/// Writes keys.npy (keys × width, after the norm), selectable.npy (their rows), queries.npy (one per
/// selectable key), margins.npy, unselectable.npy (rows), residuals.npy and weights.npy (key, other key, λ).
/// Does nothing if the name is empty.
void write_certificates(Outputs& outputs, const std::string& folder, MatrixView<const double> keys,
                        const selectability::Selection& selection) {
  if (folder.empty()) return;
  std::vector<double> all;
  std::vector<double> selectable;
  std::vector<double> queries;
  std::vector<double> margins;
  std::vector<double> unselectable;
  std::vector<double> residuals;
  std::vector<double> weights;
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    all.insert(all.end(), keys.row(i).begin(), keys.row(i).end());
    const selectability::Verdict& verdict = selection.keys[i];
    const double row = static_cast<double>(i);
    if (verdict.answer == selectability::Selectability::selectable) {
      const std::vector<double> query = selection.query(keys, i);
      selectable.push_back(row);
      queries.insert(queries.end(), query.begin(), query.end());
      margins.push_back(verdict.margin);
    } else if (verdict.answer == selectability::Selectability::unselectable) {
      unselectable.push_back(row);
      residuals.push_back(verdict.residual);
      for (const proof::PointWeight& share : verdict.weights) {
        weights.insert(weights.end(), {row, static_cast<double>(share.id), share.weight});
      }
    }
  }
  write_array(outputs, folder, "keys", std::move(all), keys.width());
  write_array(outputs, folder, "selectable", std::move(selectable));
  write_array(outputs, folder, "queries", std::move(queries), keys.width());
  write_array(outputs, folder, "margins", std::move(margins));
  write_array(outputs, folder, "unselectable", std::move(unselectable));
  write_array(outputs, folder, "residuals", std::move(residuals));
  write_array(outputs, folder, "weights", std::move(weights), 3);
}

/// Every how many rows one is printed; the JSON has all of them.
constexpr std::size_t shown_every = 10;

void say_table(const Session& session, const selectability::RandomTable& table,
               const std::vector<RandomCell>& cells, double RandomCell::*share, const char* title) {
  session.say(fmt::format("{} ({} sets a cell)", title, table.runs));
  std::string head = fmt::format("{:>6}", "keys");
  for (std::size_t width = table.least_width; width <= table.most_width; ++width) {
    head += fmt::format(" {:>6}", fmt::format("d={}", width));
  }
  session.say(head);
  std::string line;
  for (const RandomCell& cell : cells) {
    if (cell.count % shown_every != 0 && cell.count != table.most_count) continue;
    if (cell.width == table.least_width) line = fmt::format("{:>6}", cell.count);
    line += fmt::format(" {:>6.3f}", cell.*share);
    if (cell.width == table.most_width) session.say(line);
  }
}

/// `select --random-table`: prints the shares of random keys that cannot be selected, and draws them as heat
/// maps.
int run_random_table(const Session& session, Outputs& outputs, const KeyNorm& norm,
                     selectability::RandomTable table, const std::string& figures) {
  if (norm.of_width(table.least_width)) {
    table.transform = [&norm](MatrixView<double> keys) { norm.apply(norm.of_width(keys.width()), keys); };
  }
  const std::vector<RandomCell> cells =
      selectability::random_table(table, session.threads, session.progress());
  for (const Figure& figure : table_figures) {
    outputs.write_text_into(figures, figure.file, [&] {
      return json_text(figures::random_table(cells, figure.share, figure.title)) + "\n";
    });
  }
  outputs.commit([&] {
    return json_text(results::random_table(table, cells, norm.stated(norm.of_width(table.least_width))));
  });
  for (const Figure& figure : table_figures) say_table(session, table, cells, figure.share, figure.title);
  const std::optional<GivenNorm> spec = norm.of_width(table.least_width);
  if (!spec || (spec->kind == NormKind::layer && norm.steps.empty())) {
    session.say(fmt::format(
        "The first table is figure 1{} of Brody and others 2023, whose text calls it the mean share.",
        spec ? "d" : "c"));
  }
  return ok;
}

int run_select(const Session& session, Inputs& inputs, Outputs& outputs, const SelectOptions& options) {
  if (options.input.empty() && !options.random_table) throw CLI::RequiredError("KEYS or --random-table");
  const KeyNorm norm = options.norm.open(inputs);
  if (options.random_table) return run_random_table(session, outputs, norm, options.table, options.figures);
  const files::OpenedArray array = inputs.array(options.input);
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
  write_certificates(outputs, options.certificates, keys.view(), selection);
  outputs.commit([&] {
    return json_text(results::select(selection, {.width = keys.width,
                                                 .norm = norm.stated(spec),
                                                 .exact = options.exact,
                                                 .inputs = computed_from,
                                                 .folder = options.certificates}));
  });
  if (spec) spec->say_source(session);
  describe(session, keys, selection, options.exact);
  if (!options.check || selection.count(Selectability::selectable) == keys.rows) return ok;
  return selection.count(Selectability::unselectable) > 0 ? negative : undecided;
}

}  // namespace

Command select_command() {
  const auto options = std::make_shared<SelectOptions>();
  selectability::RandomTable& random = options->table;
  const auto of_table = [](Argument argument) { return std::move(argument).needs({"--random-table"}); };
  return {
      .name = "select",
      .text = "Decide which keys some query can give the highest score",
      .inputs = {input("KEYS", options->input,
                       "Keys, one a row; normalized first if options of a norm are given")},
      .outputs = {output("--certificates", options->certificates, Role::folder, npy_files(certificate_names))
                      .says("the keys, and the query or weights that prove each answer,"),
                  output("--resume", options->state).says("; answers of --exact are not saved"),
                  of_table(output("--figures", options->figures, Role::folder,
                                  {table_figures[0].file, table_figures[1].file})
                               .says("heat maps of the table"))},
      .options = joined(
          {option("--exact", options->exact),
           option("--check", options->check).says("every key is selectable"),
           option("--tolerance", options->search.tolerance)
               .says(": relative distances up to this of a key from the hull of the others"),
           option("--rank-tolerance", options->search.rank_tolerance),
           option("--random-table", options->random_table).excludes({"KEYS", "--exact"}),
           of_table(option("--runs", random.runs)), of_table(option("--most-width", random.most_width)),
           of_table(option("--most-keys", random.most_count)), of_table(option("--seed", random.seed))},
          options->norm.arguments()),
      .footer =
          "A key counts as inside the hull of the others if its distance from it, relative to the "
          "extent of all keys, is below --tolerance, in total and in each column; with 0, only if that "
          "is proved. For float32 keys that lie in a subspace, use --rank-tolerance 1e-5.\n"
          "The tables of --random-table have a row for each number of keys and a column for each width.",
      .examples = {"normscope select models/kjv_gpt:transformer.wte.weight",
                   "normscope select '0,0;2,0;0,2;0.5,0.5' --exact"},
      .run = with(run_select, options)};
}

}  // namespace normscope::cli
