#include <fmt/core.h>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "majority/runs.hpp"

// The claim of brody-majority whose rule was written after its runs, with a rule fixed before other seeds.
namespace normscope::lab::brody_majority_replication {
namespace {

using majority::layer_norm;
using majority::matched;

constexpr std::size_t least_seeds = 6;

Plan plan(Size size) {
  constexpr double d = majority::Eight::width;
  return {.configurations = {majority::configuration(layer_norm, true, d, size),
                             majority::configuration(matched, false, d, size)},
          .seeds = size == Size::full ? least_seeds : 1U};
}

/// `metric` at a step without projection minus that with LayerNorm, in each seed that has both.
Finding difference(const Results& results, const char* metric, std::uint64_t step) {
  const Results with = results.where("arm", layer_norm);
  const Results without = results.where("arm", matched);
  if (with.runs().empty() || without.runs().empty()) return {"not every arm has been run"};
  const auto number = [&](const Done& run) { return run.at(metric, step); };
  const auto paired = Results::paired(with, without, number);
  return {fmt::format("{:.4g} ± {:.2g} without projection at length sqrt(d), {:.4g} ± {:.2g} with LayerNorm; "
                      "higher without in {} of {} seeds",
                      without.spread(number).mean, without.spread(number).deviation, with.spread(number).mean,
                      with.spread(number).deviation, paired.larger, paired.difference.count),
          paired.differences};
}

Finding accuracy_at_end(const Results& results) {
  return difference(results, "test_accuracy", majority::end);
}
Finding angle_at_end(const Results& results) { return difference(results, "query_angle", majority::end); }
Finding loss_early(const Results& results) {
  Finding finding = difference(results, "loss", majority::early);
  // LayerNorm minus no projection: how much faster the latter is.
  for (double& effect : finding.effects) effect = -effect;
  return finding;
}

std::vector<Figure> figures(const Results& results) {
  return {over_steps(
      "accuracy",
      "Majority at equal length of keys, seeds that no earlier rule had seen: test accuracy from step 5180 "
      "on; "
      "mean and deviation of the seeds.",
      results,
      {.series = "arm", .metric = "test_accuracy", .title = "test accuracy", .from = majority::late})};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "brody-majority-replication",
    .paper = "Brody 2023",
    .claim =
        "At equal length of keys, LayerNorm's projection does not speed up the majority task, turns queries "
        "towards all-ones, and costs accuracy at the end.",
    .quick_seconds = 4,
    .full_minutes = 20,
    .scale = {.paper = "17,000 steps, ten seeds; no such arm", .ours = "17,020 steps, six fresh seeds"},
    .plan = plan,
    .perform = majority::train_eight,
    .claims =
        {as_ours({.name = "accuracy_at_end",
                  .says = "At the end of training the accuracy without projection is higher, at LayerNorm's "
                          "length of keys.",
                  .paper = "no such arm; the ten seeds 101 to 110 of brody-majority had 1.64 points",
                  .rule = {"seeds from 201 on: test accuracy at step 17,020 without projection at length "
                           "sqrt(d) minus that with LayerNorm",
                           Test::mean, least_seeds, 0.005},
                  .judge = accuracy_at_end}),
         as_ours(
             {.name = "no_faster",
              .says = "At that length LayerNorm is not faster.",
              .paper = "no such arm; seeds 101 to 110 had 0.077 nats in favour of no projection",
              .rule = {"seeds from 201 on: loss at step 1554 with LayerNorm minus that without projection "
                       "at length sqrt(d), nats",
                       Test::mean, least_seeds, 0.0, -0.05},
              .judge = loss_early}),
         as_ours({.name = "angle_at_end",
                  .says = "What the projection changes at that length are the queries: they are nearer to "
                          "all-ones at the end.",
                  .paper = "no such arm",
                  .rule = {"seeds from 201 on: angle of queries to all-ones at step 17,020, degrees, without "
                           "projection at length sqrt(d) minus with LayerNorm",
                           Test::mean, least_seeds, 20.0},
                  .judge = angle_at_end})},
    .figures = figures};

}  // namespace normscope::lab::brody_majority_replication
