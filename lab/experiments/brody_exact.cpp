#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/selectability/select.hpp>

#include "frame/experiment.hpp"

namespace normscope::lab::brody_exact {
namespace {

using selectability::Selectability;
using selectability::Selection;

Plan plan(Size size) {
  const bool full = size == Size::full;
  Plan plan{.seeds = full ? 3U : 1U};
  for (const std::size_t width : {3, 8, 16}) {
    plan.configurations.push_back(
        {{"width", width}, {"keys", full ? 1024 : 200}, {"inside", 8}, {"queries", full ? 20000 : 1000}});
  }
  return plan;
}

struct Keys {
  std::vector<double> values{};
  std::size_t width = 0;

  [[nodiscard]] MatrixView<double> view() { return {values.data(), values.size() / width, width}; }
};

Keys normal_keys(std::size_t count, std::size_t width, Random& random) {
  Keys keys{std::vector<double>(count * width), width};
  for (double& value : keys.values) value = random.normal();
  return keys;
}

/// Keys inside the hull of the first `count`, each a mixture of all of them.
void add_inside(Keys& keys, std::size_t count, std::size_t inside, Random& random) {
  for (std::size_t i = 0; i < inside; ++i) {
    std::vector<double> mixture(keys.width, 0.0);
    double total = 0.0;
    for (std::size_t row = 0; row < count; ++row) {
      const double weight = -std::log(1.0 - random.uniform());
      total += weight;
      for (std::size_t f = 0; f < keys.width; ++f) mixture[f] += weight * keys.values[row * keys.width + f];
    }
    for (const double entry : mixture) keys.values.push_back(entry / total);
  }
}

/// How many of the last `inside` keys lead under some of `queries` random queries.
std::size_t wins(Keys& keys, std::size_t inside, std::size_t queries, Random& random) {
  const MatrixView<double> all = keys.view();
  std::size_t won = 0;
  std::vector<double> query(keys.width);
  for (std::size_t i = 0; i < queries; ++i) {
    for (double& entry : query) entry = random.normal();
    std::size_t best = 0;
    double highest = -INFINITY;
    for (std::size_t row = 0; row < all.rows(); ++row) {
      double score = 0.0;
      for (std::size_t f = 0; f < keys.width; ++f) score += query[f] * all.row(row)[f];
      // A tied key inside the hull wins: the theorem is tested strictly.
      if (score > highest || (score == highest && row + inside >= all.rows())) {
        highest = score;
        best = row;
      }
    }
    won += best + inside >= all.rows() ? 1 : 0;
  }
  return won;
}

void perform(Run& run) {
  if (run.step() > 0) return;
  Random random(run.seed() * 1000 + run.get<std::size_t>("width"));
  const auto count = run.get<std::size_t>("keys");
  const auto inside = run.get<std::size_t>("inside");
  Keys keys = normal_keys(count, run.get<std::size_t>("width"), random);
  add_inside(keys, count, inside, random);
  const Selection selection = selectability::select_keys(keys.view(), {.threads = 1});
  std::size_t found = 0;
  for (std::size_t i = count; i < count + inside; ++i) {
    found += selection.keys[i].answer == Selectability::unselectable ? 1 : 0;
  }
  run.measure("inside_lost", 1, static_cast<double>(found) / static_cast<double>(inside));
  run.measure("inside_wins", 1,
              static_cast<double>(wins(keys, inside, run.get<std::size_t>("queries"), random)));
  run.measure("undecided", 1, static_cast<double>(selection.count(Selectability::undecided)));
  run.measure("proved", 1, selectability::verify(keys.view(), selection, 1U) ? 1.0 : 0.0);

  norm::forward({.width = keys.width, .eps = 0.0}, keys.view(), keys.view());
  const Selection scaled = selectability::select_keys(keys.view(), {.threads = 1});
  run.measure("scaled_lost", 1,
              static_cast<double>(keys.view().rows() - scaled.count(Selectability::selectable)));
  const std::vector<double> weights =
      selectability::attention_weights(keys.view(), std::vector<double>(keys.width, 3.0));
  double off = 0.0;
  for (const double weight : weights) {
    off = std::max(off, std::abs(weight * static_cast<double>(weights.size()) - 1.0));
  }
  run.measure("uneven", 1, off);
  run.reached(1, 1, [] { return Bytes(); });
}

/// Judges the maximum of `metric` over all runs; conclusive after three seeds of at least a thousand keys.
Finding judge(const Results& results, const char* metric, double most_allowed, const char* what) {
  if (results.runs().empty()) return {"nothing has been run"};
  const double most = results.last(metric).most;
  return {fmt::format("at most {:.2g} {}, {} runs", most, what, results.runs().size()),
          results.numbers([&](const Done& run) { return run.last(metric) <= most_allowed ? 1.0 : 0.0; })};
}

Finding judge_inside(const Results& results) {
  Finding finding = judge(results, "inside_wins", 0.0, "wins of keys inside the hull");
  if (!results.runs().empty() && results.last("inside_lost").least < 1.0) finding.effects = {0.0};
  return finding;
}

Finding judge_converse(const Results& results) {
  Finding finding = judge(results, "undecided", 0.0, "keys undecided");
  if (!results.runs().empty() && results.last("proved").least < 1.0) finding.effects = {0.0};
  return finding;
}

Finding judge_scaled(const Results& results) {
  return judge(results, "scaled_lost", 0.0, "LayerNorm'd keys unselectable");
}

Finding judge_equal(const Results& results) {
  return judge(results, "uneven", 1e-12, "relative deviation of a weight from 1/n");
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "brody-exact",
    .paper = "Brody 2023",
    .claim = "The paper's theorems about keys, queries and LayerNorm, checked on random keys.",
    .quick_seconds = 1,
    .full_minutes = 1,
    .scale = {.paper = "theorems, of any size", .ours = "1024 keys of widths 3, 8 and 16"},
    .plan = plan,
    .perform = perform,
    .claims = {
        {"theorem_1",
         "A key inside the hull of the others never has the highest score.",
         "theorem 1",
         {"0 wins of 8 keys inside under 20,000 queries at each width, and all 8 found unselectable, 3 seeds",
          Test::every_case, 3},
         judge_inside},
        as_ours(
            {"converse",
             "Every key has a query that selects it, or weights that prove that it has none.",
             "not proved there",
             {"0 undecided and every certificate checked from the keys alone, 3 seeds", Test::every_case, 3},
             judge_converse}),
        {"scaling",
         "LayerNorm makes every key selectable.",
         "section 3.2",
         {"0 of the keys lost, 3 seeds", Test::every_case, 3},
         judge_scaled},
        {"equal_attention",
         "A query along all-ones attends to all LayerNorm'd keys equally.",
         "section 3.1",
         {"no weight deviates from 1/n by more than 1e-12 relative, 3 seeds", Test::every_case, 3},
         judge_equal}}};

}  // namespace normscope::lab::brody_exact
