#include <cmath>
#include <map>
#include <memory>

#include <fmt/core.h>

#include <normscope/core/rounding.hpp>
#include <normscope/nets/tasks.hpp>
#include <normscope/results/figures/vega.hpp>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "ln_nets/folds.hpp"
#include "ln_nets/training.hpp"

// The rules were written after a look at other code's trainings and before these seeds.
namespace normscope::lab::winsor_folds {
namespace {

constexpr std::size_t full_seeds = 20;
constexpr std::size_t least_seeds = 10;
constexpr double solved_at = 0.98;

constexpr const char* unhindered = "free";
constexpr const char* moved = "folded at the beginning";
constexpr const char* may_cross = "distance at least 0.9";
constexpr const char* near = "distance at least 1.001";
constexpr const char* never = "distance at least 1.1";

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1U : full_seeds};
  const auto add = [&](const char* arm, double start, double least) {
    Json configuration{{"arm", arm}, {"start", start}, {"least", least}, {"rows", 300}, {"test", 4000}};
    configuration.update(ln_nets::to_json({.steps = quick ? 600U : 8000U, .record_every = 1}));
    plan.configurations.push_back(std::move(configuration));
  };
  add(unhindered, 0.0, 0.0);
  add(moved, 1.5, 0.0);
  add(may_cross, 0.0, 0.9);
  add(near, 0.0, 1.001);
  add(never, 0.0, 1.1);
  return plan;
}

void perform(Run& run) {
  ln_nets::train_with_folds(
      run, std::make_shared<const nets::Dataset>(nets::spiral(run.get<std::size_t>("rows"), run.seed())),
      nets::spiral(run.get<std::size_t>("test"), run.seed() + 1'000'000));
}

Results arm(const Results& results, const char* name) { return results.where("arm", name); }

double solved(const Done& run) { return run.last("test_accuracy") > solved_at ? 1.0 : 0.0; }

std::string count_of(const Results& runs, double (*holds)(const Done&)) {
  double count = 0.0;
  for (const double one : runs.numbers(holds)) count += one;
  return fmt::format("{:.0f} of {}", count, runs.runs().size());
}

double is_folded(const Done& run) { return run.last("degree") == 0.0 ? 1.0 : 0.0; }

Finding ends_folded(const Results& results) {
  const Results runs = arm(results, unhindered);
  if (runs.runs().empty()) return {"not run"};
  const auto both = [](const Done& run) { return solved(run) * is_folded(run); };
  return {
      fmt::format("{} trainings classify more than 98 %, and {} end folded; the degree changes {:.0f} times "
                  "before 95 % (median; {:.0f} to {:.0f})",
                  count_of(runs, solved), count_of(runs, is_folded), ln_nets::median(runs, "changes_to_95"),
                  runs.last("changes_to_95").least, runs.last("changes_to_95").most),
      runs.numbers(both)};
}

Finding crossing_needed(const Results& results) {
  const Results with = arm(results, may_cross);
  const Results without = arm(results, never);
  if (with.runs().empty() || without.runs().empty()) return {"not run"};
  Finding finding{
      fmt::format("{} trainings classify more than 98 % with the distance kept at 0.9 or more, {} at "
                  "1.001 or more, {} at 1.1 or more",
                  count_of(with, solved), count_of(arm(results, near), solved), count_of(without, solved))};
  for (const double difference : Results::paired(without, with, solved).differences)
    finding.effects.push_back(difference > 0.0 ? 1.0 : 0.0);
  return finding;
}

Finding early_crossing_helps(const Results& results) {
  const Results free = arm(results, unhindered);
  const Results early = arm(results, moved);
  if (free.runs().empty() || early.runs().empty()) return {"not run"};
  const auto paired =
      Results::paired(early, free, [](const Done& run) { return std::log(run.last("to_95")); });
  return {
      fmt::format("median step to 95 % {:.0f} free and {:.0f} folded at the beginning; earlier in {} of {} "
                  "seeds",
                  ln_nets::median(free, "to_95"), ln_nets::median(early, "to_95"), paired.larger,
                  paired.difference.count),
      paired.differences};
}

/// The free trainings that measured `metric`.
Results with_metric(const Results& results, const char* metric) {
  std::vector<Done> found;
  const Results runs = arm(results, unhindered);
  for (const Done& run : runs.runs()) {
    if (run.has(metric)) found.push_back(run);
  }
  return Results(std::move(found));
}

Finding coincides(const Results& results) {
  const Results runs = with_metric(results, "rank");
  if (runs.runs().empty()) return {"no transition with a window before it"};
  return {fmt::format("more changes around the transition than in {:.1f} % of windows before it, mean of {} "
                      "trainings",
                      100.0 * runs.last("rank").mean, runs.runs().size()),
          runs.numbers([](const Done& run) { return run.last("rank"); })};
}

Finding low_gradient_before(const Results& results) {
  const Results runs = with_metric(results, "gradient_rise");
  if (runs.runs().empty()) return {"no transition"};
  return {
      fmt::format("the gradient is {:.1f} times as long in the transition as before it, geometric mean of {} "
                  "trainings",
                  std::exp(runs.last("gradient_rise").mean), runs.runs().size()),
      runs.numbers([](const Done& run) { return run.last("gradient_rise"); })};
}

Finding loss_at_changes(const Results& results) {
  const Results runs = with_metric(results, "loss_after_change");
  if (runs.runs().empty()) return {"no change"};
  return {
      fmt::format("in ten steps the loss changes by {:+.2f} % after a change of the degree and by {:+.2f} % "
                  "after other steps",
                  100.0 * runs.last("loss_after_change").mean, 100.0 * runs.last("loss_elsewhere").mean),
      runs.numbers(
          [](const Done& run) { return run.last("loss_after_change") - run.last("loss_elsewhere"); })};
}

/// Changes of the degree per 100 steps, by steps from the transition, over the free trainings.
Figure changes_around(const Results& results) {
  std::map<int, std::vector<double>> by_distance;
  const Results runs = with_metric(results, "transition");
  for (const Done& run : runs.runs()) {
    const int transition = static_cast<int>(run.last("transition"));
    for (const Metric& metric : run.metrics) {
      if (metric.name != "changes" || metric.step == 1) continue;
      // The hundred steps before the metric's, by the hundreds from the transition in which their middle is.
      const double hundreds = (static_cast<double>(metric.step) - 51.0 - transition) / 100.0;
      by_distance[100 * static_cast<int>(std::floor(hundreds))].push_back(metric.value);
    }
  }
  Json rows = Json::array();
  for (const auto& [distance, counts] : by_distance) {
    if (distance < -1500 || distance > 2000 || counts.size() < 3) continue;
    rows.push_back({{"series", "changes"}, {"x", distance}, {"y", rounded_to_digits(mean(counts), 4)}});
  }
  return {
      "changes",
      "Changes of the degree of the second norm in 100 steps, by the step at which they begin, counted from "
      "that of the transition; mean over free trainings, where three or more have such steps.",
      vega::curves(std::move(rows),
                   {.x = "steps from the transition", .y = "changes of the degree in 100 steps"})};
}

std::vector<Figure> figures(const Results& results) {
  if (results.runs().empty()) return {};
  return {over_steps("accuracy",
                     "Accuracy on the spiral, free and with the second norm's fold held; mean and deviation.",
                     results, {.series = "arm", .metric = "accuracy", .title = "accuracy"}),
          changes_around(results)};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "winsor-folds",
    .paper = "Winsor 2022",
    .claim =
        "A net of width 3 with two norms learns the spiral while the degree of its second norm changes back "
        "and "
        "forth, and not if it cannot change.",
    .quick_seconds = 2,
    .full_minutes = 5,
    .scale = {.paper = "one training, shown", .ours = "20 seeds, 300 samples, 8000 steps"},
    .plan = plan,
    .perform = perform,
    .claims =
        {as_ours(
             {.name = "ends_folded",
              .says = "Free trainings separate the spiral and end with a folded sphere.",
              .paper = "a figure of the final states",
              .rule =
                  {"seeds from 501 on: free trainings that classify more than 98 % of 4000 new points and "
                   "whose second norm has degree 0 at the end",
                   Test::share, least_seeds, 0.8, 0.5},
              .judge = ends_folded}),
         as_ours(
             {.name = "crossing_needed",
              .says = "A training whose fold can cross the sphere separates the spiral, and one that is held "
                      "folded does not.",
              .paper = "ours",
              .rule =
                  {"seeds from 501 on: seeds that classify more than 98 % if the second bias is scaled to a "
                   "distance of the fold of at least 0.9 after every step, and do not with 1.1",
                   Test::share, least_seeds, 0.7, 0.5},
              .judge = crossing_needed}),
         as_ours(
             {.name = "early_crossing_helps",
              .says = "Moving the bias across the origin at the beginning halves the steps to 95 %.",
              .paper = "ours",
              .rule = {"seeds from 501 on: ln of the step to 95 % of a free training minus that of one that "
                       "begins with distance 1.5",
                       Test::mean, least_seeds, 0.693},
              .judge = early_crossing_helps}),
         as_ours(
             {.name = "coincides",
              .says = "The degree changes more often around the transition than on the plateau before it.",
              .paper = "a guess: folds move points very fast",
              .rule =
                  {"seeds from 501 on: share of windows of 300 steps before a free training's largest "
                   "transition with fewer changes of the degree than the one from 100 steps before to 200 "
                   "steps after its beginning, ties half",
                   Test::mean, least_seeds, 0.8, 0.5},
              .judge = coincides}),
         as_ours(
             {.name = "low_gradient_before",
              .says = "Before the transition the gradient is small.",
              .paper = "a guess: regions of low gradient are crossed first",
              .rule = {"seeds from 501 on: ln of the median length of the gradient in the 100 steps of the "
                       "transition over that in the 200 steps before",
                       Test::mean, least_seeds, 0.693},
              .judge = low_gradient_before}),
         as_ours(
             {.name = "loss_at_changes",
              .says = "The loss changes no differently after a change of the degree than after other steps.",
              .paper = "ours",
              .rule =
                  {"seeds from 501 on: mean change of ln loss in the ten steps after a change of the degree "
                   "minus that after other steps, before 95 %, free trainings",
                   Test::equivalence, least_seeds, 0.02},
              .judge = loss_at_changes})},
    .figures = figures};

}  // namespace normscope::lab::winsor_folds
