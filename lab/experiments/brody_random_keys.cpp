#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <normscope/core/rounding.hpp>
#include <normscope/core/text.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/selectability/select.hpp>

#include "frame/experiment.hpp"

namespace normscope::lab::brody_random_keys {
namespace {

using selectability::FigureRow;
using selectability::RandomCell;
using selectability::RandomTable;

Json configuration(const char* norm, Size size) {
  const bool full = size == Size::full;
  return {{"norm", norm},     {"runs", full ? 100 : 20},
          {"least_width", 3}, {"most_width", full ? 15 : 8},
          {"least_count", 3}, {"most_count", full ? 60 : 20}};
}

Plan plan(Size size) {
  return {.configurations = {configuration("none", size), configuration("layer", size)},
          .seeds = size == Size::full ? 3U : 1U};
}

std::string name_of(const char* share, std::size_t width) { return fmt::format("{}_{}", share, width); }

/// A step is a row of the table, under its number of keys.
void perform(Run& run) {
  RandomTable table{.least_width = run.get<std::size_t>("least_width"),
                    .most_width = run.get<std::size_t>("most_width"),
                    .runs = run.get<std::size_t>("runs"),
                    .seed = run.seed()};
  if (run.get<std::string>("norm") == "layer") {
    table.transform = [](MatrixView<double> keys) {
      norm::forward({.width = keys.width(), .eps = 0.0}, keys, keys);
    };
  }
  const auto most = run.get<std::size_t>("most_count");
  for (std::size_t count = std::max<std::size_t>(run.step() + 1, run.get<std::size_t>("least_count"));
       count <= most; ++count) {
    table.least_count = table.most_count = count;
    std::size_t undecided = 0;
    for (const RandomCell& cell : selectability::random_table(table, 1)) {
      run.measure(name_of("any", cell.width), count, cell.any);
      run.measure(name_of("mean", cell.width), count, cell.mean);
      undecided += cell.undecided;
    }
    run.measure("undecided", count, static_cast<double>(undecided));
    run.reached(count, most, [] { return Bytes(); });
  }
}

std::size_t entry(const Done& run, const char* key) { return run.configuration[key].get<std::size_t>(); }

std::vector<RandomCell> cells_of(const Done& run) {
  std::vector<RandomCell> cells;
  for (std::size_t count = entry(run, "least_count"); count <= entry(run, "most_count"); ++count) {
    for (std::size_t width = entry(run, "least_width"); width <= entry(run, "most_width"); ++width) {
      cells.push_back({.width = width,
                       .count = count,
                       .any = run.at(name_of("any", width), count),
                       .mean = run.at(name_of("mean", width), count)});
    }
  }
  return cells;
}

constexpr std::size_t seeds = 3;
constexpr std::size_t figure_cells = 150;

/// Agreement of a share with the decoded colours, for the seed with the worst agreement.
struct Agreement {
  double correlation = 1.0;
  double farthest = 0.0;
  std::size_t cells = figure_cells;
};

Agreement agreement(const Results& results, double RandomCell::*share) {
  Agreement least;
  const Results runs = results.where("norm", "none");
  for (const Done& run : runs.runs()) {
    std::vector<double> ours;
    std::vector<double> theirs;
    for (const RandomCell& cell : cells_of(run)) {
      for (const FigureRow& row : selectability::figure_1c()) {
        const std::size_t column = cell.width - 3;
        if (row.count != cell.count || column >= row.shares.size()) continue;
        ours.push_back(cell.*share);
        theirs.push_back(row.shares[column]);
        least.farthest = std::max(least.farthest, std::abs(ours.back() - theirs.back()));
      }
    }
    least.correlation = std::min(least.correlation, correlation(ours, theirs));
    least.cells = std::min(least.cells, ours.size());
  }
  return least;
}

Finding judge_share(const Results& results, double RandomCell::*share) {
  const Results runs = results.where("norm", "none");
  if (runs.runs().empty()) return {"not every arm has been run"};
  const Agreement found = agreement(results, share);
  return {fmt::format("over {} cells correlation {:.3f} and largest difference {:.2f}, in the worst of {}",
                      found.cells, found.correlation, found.farthest, counted(runs.seeds(), "seed")),
          found.cells == figure_cells ? one_case(found.correlation >= 0.99 && found.farthest <= 0.25)
                                      : std::vector<double>{}};
}

Finding judge_any(const Results& results) { return judge_share(results, &RandomCell::any); }
Finding judge_mean(const Results& results) { return judge_share(results, &RandomCell::mean); }

Finding judge_layer(const Results& results) {
  const Results runs = results.where("norm", "layer");
  if (runs.runs().empty()) return {"not every arm has been run"};
  double most = 0.0;
  std::size_t cells = 0;
  for (const Done& run : runs.runs()) {
    for (const RandomCell& cell : cells_of(run)) {
      most = std::max(most, cell.any);
      ++cells;
    }
  }
  return {fmt::format("at most {} of the sets in any of {} cells", most, cells), one_case(most == 0.0)};
}

std::vector<Figure> figures(const Results& results) {
  const Results runs = results.where("norm", "none");
  if (runs.runs().empty()) return {};
  const auto figure = [&](const char* name, double RandomCell::*share, const char* caption) {
    return Figure{name, caption, figures::random_table(cells_of(runs.runs().front()), share, caption)};
  };
  return {
      figure("any", &RandomCell::any, "Random keys without a norm: sets with a key that cannot be selected."),
      figure("mean", &RandomCell::mean,
             "Random keys without a norm: mean share of keys that cannot be selected.")};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "brody-random-keys",
    .paper = "Brody 2023",
    .claim = "Some random keys are unselectable; after LayerNorm all are selectable.",
    .quick_seconds = 1,
    .full_minutes = 1,
    .scale = {.paper = "100 sets a cell, 3 to 60 keys of widths 3 to 15", .ours = "the same, three times"},
    .plan = plan,
    .perform = perform,
    .claims =
        {{"figure_is_any",
          "The colours of figure 1c are the share of sets with at least one unselectable key.",
          "the released code counts these",
          {"correlation with the 150 decoded colours at least 0.99 and none off by 0.25, in each of 3 seeds",
           Test::every_case, seeds},
          judge_any,
          {},
          false,
          true},
         {"figure_is_mean",
          "The colours of figure 1c are the mean share of unselectable keys.",
          "the figure's caption says so",
          {"correlation with the 150 decoded colours at least 0.99 and none off by 0.25, in each of 3 seeds",
           Test::every_case, seeds},
          judge_mean,
          {},
          false,
          true},
         {"layer_norm",
          "After LayerNorm every key can be selected.",
          "0 in every cell (figure 1d)",
          {"no unselectable key in any cell of widths 3 to 15 and 3 to 60 keys, 3 seeds", Test::every_case,
           seeds},
          judge_layer}},
    .figures = figures};

}  // namespace normscope::lab::brody_random_keys
