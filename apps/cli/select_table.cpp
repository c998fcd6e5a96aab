#include "select_table.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "inputs.hpp"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;
using selectability::RandomCell;

/// Every how many rows one is printed; the JSON has all of them.
constexpr std::size_t shown_every = 10;

void describe(const Session& session, const selectability::RandomTable& table,
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

}  // namespace

int run_random_table(const Session& session, const Inputs& inputs, const KeyNorm& norm,
                     selectability::RandomTable table, const std::string& figures) {
  struct Figure {
    const char* name;
    double RandomCell::*share;
    const char* title;
  };
  const std::vector<Figure> all{
      {"any.vl.json", &RandomCell::any, "Sets of random keys with one that no query selects"},
      {"mean.vl.json", &RandomCell::mean, "Mean share of random keys that no query selects"}};
  std::vector<std::string> outputs{session.json};
  for (const Figure& figure : all) {
    if (!figures.empty()) outputs.push_back((fs::path(figures) / figure.name).string());
  }
  inputs.keep_apart(outputs);
  if (norm.of_width(table.least_width)) {
    table.transform = [&norm](MatrixView<double> keys) { norm.apply(norm.of_width(keys.width()), keys); };
  }
  const std::vector<RandomCell> cells =
      selectability::random_table(table, session.threads, session.progress());
  AtomicGroup together;
  if (!figures.empty()) make_folder(figures);
  for (const Figure& figure : all) {
    if (figures.empty()) break;
    AtomicFile file(fs::path(figures) / figure.name);
    file.write(json_text(figures::random_table(cells, figure.share, figure.title)) + "\n");
    file.commit();
  }
  session.write_json(
      json_text(results::random_table(table, cells, norm.json(norm.of_width(table.least_width)))));
  together.commit();
  for (const Figure& figure : all) describe(session, table, cells, figure.share, figure.title);
  const std::optional<GivenNorm> spec = norm.of_width(table.least_width);
  if (!spec || (spec->kind == NormKind::layer && norm.steps.empty())) {
    session.say(fmt::format(
        "The first table is figure 1{} of Brody and others 2023, whose text calls it the mean share.",
        spec ? "d" : "c"));
  }
  return ok;
}

}  // namespace normscope::cli
