#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>

#include <fmt/format.h>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "majority/runs.hpp"

namespace normscope::lab::brody_majority {
namespace {

using majority::Eight;

using majority::early;
using majority::end;
using majority::late;
using majority::layer_norm;
using majority::matched;

constexpr const char* published = "no projection, length 1/sqrt(d)";
constexpr const char* by_deviation = "no projection, divided by sigma";
constexpr const char* small = "projection, length 1/sqrt(d)";

/// The training loss at which the paper compares numbers of steps.
constexpr double dashed_line = 0.21;

Plan plan(Size size) {
  constexpr double d = Eight::width;
  return {.configurations = {majority::configuration(layer_norm, true, d, size),
                             majority::configuration(published, false, 1.0 / d, size),
                             majority::configuration(matched, false, d, size),
                             majority::configuration(by_deviation, false, d, size, true),
                             majority::configuration(small, true, 1.0 / d, size)},
          .seeds = size == Size::full ? 10U : 2U};
}

Results arm(const Results& results, const char* name) { return results.where("arm", name); }

/// Whether some runs of every arm are there.
bool some(const Results& results, std::initializer_list<const char*> arms) {
  return std::none_of(arms.begin(), arms.end(),
                      [&](const char* name) { return arm(results, name).runs().empty(); });
}

constexpr const char* missing = "not every arm has been run";

/// A number of `second` divided by that of `first`, for every seed.
std::vector<double> ratios(const Results& first, const Results& second,
                           const std::function<double(const Done&)>& number) {
  std::vector<double> all =
      Results::paired(first, second, [&](const Done& run) { return std::log(number(run)); }).differences;
  for (double& ratio : all) ratio = std::exp(ratio);
  return all;
}

double loss_at_early(const Done& run) { return run.at("loss", early); }

Finding judge_gap(const Results& results) {
  if (!some(results, {layer_norm, published})) return {missing};
  const double with = arm(results, layer_norm).spread(loss_at_early).mean;
  const double without = arm(results, published).spread(loss_at_early).mean;
  const auto paired = Results::paired(arm(results, layer_norm), arm(results, published), loss_at_early);
  return {fmt::format("{:.3f} with, {:.3f} without; higher without in {} of {} seeds", with, without,
                      paired.larger, paired.difference.count),
          ratios(arm(results, layer_norm), arm(results, published), loss_at_early)};
}

Finding steps_to_loss(const Results& results, double loss) {
  if (!some(results, {layer_norm, published})) return {missing};
  const auto steps = [loss](const Done& run) {
    for (const Metric& metric : run.metrics) {
      if (metric.name == "loss" && metric.value <= loss) return static_cast<double>(metric.step);
    }
    return run.configuration["steps"].get<double>();
  };
  const double with = arm(results, layer_norm).spread(steps).mean;
  const double without = arm(results, published).spread(steps).mean;
  return {fmt::format("{:.0f} with, {:.0f} without, {:.1f} times", with, without, without / with),
          ratios(arm(results, layer_norm), arm(results, published), steps)};
}

Finding judge_steps(const Results& results) { return steps_to_loss(results, 1.0); }
Finding judge_dashed_line(const Results& results) { return steps_to_loss(results, dashed_line); }

/// The gap between an arm and LayerNorm, divided by the published arm's mean gap, for every seed.
std::vector<double> parts_of_gap(const Results& results, const char* name) {
  const Results base = arm(results, layer_norm);
  const double whole = Results::paired(base, arm(results, published), loss_at_early).difference.mean;
  std::vector<double> parts = Results::paired(base, arm(results, name), loss_at_early).differences;
  for (double& part : parts) part /= whole;
  return parts;
}

/// How much of the gap is closed by an arm without projection.
Finding closes_gap(const Results& results, const char* name) {
  if (!some(results, {layer_norm, published, name})) return {missing};
  std::vector<double> closed = parts_of_gap(results, name);
  for (double& part : closed) part = 1.0 - part;
  return {fmt::format("{:.3f} with {}, {:.3f} with LayerNorm", arm(results, name).spread(loss_at_early).mean,
                      name, arm(results, layer_norm).spread(loss_at_early).mean),
          std::move(closed)};
}

Finding judge_matched(const Results& results) { return closes_gap(results, matched); }
Finding judge_by_deviation(const Results& results) { return closes_gap(results, by_deviation); }

Finding judge_small(const Results& results) {
  if (!some(results, {layer_norm, published, small})) return {missing};
  return {fmt::format("{:.3f} at length 1/sqrt(d) with projection, {:.3f} without",
                      arm(results, small).spread(loss_at_early).mean,
                      arm(results, published).spread(loss_at_early).mean),
          parts_of_gap(results, small)};
}

/// `metric` at a step with LayerNorm beside that of `other`.
Finding beside(const Results& results, const char* other, const char* metric, bool as_ratio,
               std::uint64_t step = late) {
  if (!some(results, {layer_norm, other})) return {missing};
  const auto number = [metric, step](const Done& run) { return run.at(metric, step); };
  const Spread with = arm(results, layer_norm).spread(number);
  const Spread without = arm(results, other).spread(number);
  const auto paired = Results::paired(arm(results, layer_norm), arm(results, other), number);
  return {
      fmt::format("{:.3g} ± {:.2g} with LayerNorm, {:.3g} ± {:.2g} without; higher without in {} of {} seeds",
                  with.mean, with.deviation, without.mean, without.deviation, paired.larger,
                  paired.difference.count),
      as_ratio ? ratios(arm(results, layer_norm), arm(results, other), number) : paired.differences};
}

Finding judge_angle(const Results& results) { return beside(results, published, "query_angle", false); }
Finding judge_angle_matched(const Results& results) { return beside(results, matched, "query_angle", false); }
Finding judge_uniform(const Results& results) { return beside(results, published, "divergence", true); }
Finding judge_uniform_matched(const Results& results) { return beside(results, matched, "divergence", true); }

Finding judge_angle_at_end(const Results& results) {
  return beside(results, published, "query_angle", false, end);
}
Finding judge_loss_at_end(const Results& results) { return beside(results, published, "loss", true, end); }

Finding more_accurate(const Results& results, std::uint64_t step) {
  if (!some(results, {layer_norm, published})) return {missing};
  const auto number = [step](const Done& run) { return run.at("test_accuracy", step); };
  const auto paired = Results::paired(arm(results, published), arm(results, layer_norm), number);
  return {fmt::format("{:.3f} with, {:.3f} without; higher with in {} of {} seeds",
                      arm(results, layer_norm).spread(number).mean,
                      arm(results, published).spread(number).mean, paired.larger, paired.difference.count),
          paired.differences};
}

Finding judge_accuracy(const Results& results) { return more_accurate(results, late); }
Finding judge_accuracy_at_end(const Results& results) { return more_accurate(results, end); }

/// Without projection at LayerNorm's length minus LayerNorm.
Finding matched_accuracy(const Results& results, std::uint64_t step) {
  if (!some(results, {layer_norm, matched})) return {missing};
  const auto number = [step](const Done& run) { return run.at("test_accuracy", step); };
  const auto paired = Results::paired(arm(results, layer_norm), arm(results, matched), number);
  return {fmt::format("{:.3f} without projection at length sqrt(d), {:.3f} with LayerNorm; higher without in "
                      "{} of {} seeds",
                      arm(results, matched).spread(number).mean, arm(results, layer_norm).spread(number).mean,
                      paired.larger, paired.difference.count),
          paired.differences};
}

Finding judge_accuracy_matched(const Results& results) { return matched_accuracy(results, late); }
Finding judge_accuracy_matched_at_end(const Results& results) { return matched_accuracy(results, end); }

std::vector<Figure> figures(const Results& results) {
  const auto figure = [&](const char* name, const char* metric, const char* title, const char* caption,
                          bool logarithmic = false) {
    return over_steps(name, caption, results,
                      {.series = "arm", .metric = metric, .title = title, .logarithmic = logarithmic});
  };
  return {figure("loss", "loss", "training loss",
                 "Majority: training loss, by the transformation before attention."),
          figure("accuracy", "test_accuracy", "test accuracy", "Majority: test accuracy over tokens."),
          figure("angle", "query_angle", "angle of queries to ones, degrees",
                 "Majority: angle of effective queries to all-ones."),
          figure("uniformity", "divergence", "divergence of attention from uniform, nats",
                 "Majority: divergence of attention over positions from uniform.", true),
          figure("queries", "query_length", "length of queries", "Majority: length of effective queries.")};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "brody-majority",
    .paper = "Brody 2023",
    .claim =
        "The majority task is learned faster when the inputs of attention are longer; LayerNorm turns "
        "queries towards all-ones.",
    .quick_seconds = 8,
    .full_minutes = 80,
    .scale = {.paper = "17,000 steps, ten seeds", .ours = "17,020 steps, ten seeds", .factor = 1.0},
    .plan = plan,
    .perform = majority::train_eight,
    .claims =
        {{"published_gap",
          "The training loss falls faster with LayerNorm than without projection, as released.",
          "at step 1554: 0.501 with, 1.068 without (figure 2a)",
          {"loss at step 1554 without projection divided by that with LayerNorm, in each seed", Test::mean,
           10, 1.5, 1.0},
          judge_gap},
         {"published_steps",
          "Without projection, as released, reaching a given loss takes several times as many steps.",
          "to loss 1.0: 770 with, 1680 without, 2.2 times (figure 2a)",
          {"steps to loss 1.0 without projection divided by those with LayerNorm, in each seed; a run that "
           "does not reach it counts with all its steps",
           Test::mean, 10, 1.5, 1.0},
          judge_steps},
         {"dashed_line",
          "Without projection, as released, training takes three times as many steps to a loss of 0.21.",
          "4961 with, 15178 without, 3.06 times (figure 2a and its text)",
          {"steps to loss 0.21 without projection divided by those with LayerNorm, in each seed; a run that "
           "does not reach it counts with all its steps",
           Test::mean, 10, 2.0, 1.0},
          judge_dashed_line,
          "two runs without projection end above the loss and count with all their steps, and the interval "
          "begins below "
          "the rule's 2"},
         as_ours({"gap_is_length",
                  "The gap vanishes if keys without projection have LayerNorm's length (ours).",
                  "no such arm: the released one without projection is also 8 times shorter",
                  {"share of the published arm's mean gap at step 1554 that is closed without projection at "
                   "length "
                   "sqrt(d)",
                   Test::mean, 10, 0.8},
                  judge_matched}),
         {"gap_with_deviation",
          "The gap vanishes if keys without projection are divided by sigma, as the paper describes that "
          "arm.",
          "described, but the released arm divides by the length and by sqrt(d)",
          {"share of the published arm's mean gap at step 1554 that is closed by x / sigma", Test::mean, 10,
           0.8},
          judge_by_deviation},
         as_ours(
             {"gap_with_projection",
              "The gap appears with the projection too if keys are as short (ours).",
              "no such arm",
              {"gap to LayerNorm at step 1554 with projection at length 1/sqrt(d), divided by the published "
               "arm's mean gap",
               Test::mean, 10, 0.8},
              judge_small}),
         {"query_angle",
          "LayerNorm turns queries towards all-ones.",
          "at step 5000: 25.7 degrees with, 73.1 without "
          "(figure 2b)",
          {"angle of queries to all-ones at step 5180, degrees: without projection minus with LayerNorm",
           Test::mean, 10, 20.0},
          judge_angle},
         {"query_angle_at_end",
          "At the end of training queries with LayerNorm are still nearer to all-ones.",
          "at step 17,000: 11.6 degrees with, 83.0 without (figure 2b)",
          {"angle of queries to all-ones at step 17,020, degrees: without projection minus with LayerNorm",
           Test::mean, 10, 20.0},
          judge_angle_at_end},
         as_ours({"query_angle_matched",
                  "LayerNorm turns queries towards all-ones also compared to keys of the same length without "
                  "projection (ours).",
                  "no such arm",
                  {"angle of queries to all-ones at step 5180, degrees: without projection at length sqrt(d) "
                   "minus "
                   "with LayerNorm",
                   Test::mean, 10, 20.0},
                  judge_angle_matched}),
         {"uniform",
          "LayerNorm's attention is nearer to uniform than the released arm's without projection.",
          "section 3.1, without a number",
          {"divergence of attention from uniform at step 5180, in each seed: without projection divided by "
           "that with LayerNorm",
           Test::mean, 10, 1.5, 1.0},
          judge_uniform},
         as_ours({"uniform_matched",
                  "Attention with LayerNorm is nearer to uniform than without projection at the same length "
                  "(ours).",
                  "no such arm",
                  {"divergence of attention from uniform at step 5180, in each seed: without projection at "
                   "length "
                   "sqrt(d) divided by that with LayerNorm",
                   Test::mean, 10, 1.5, 1.0},
                  judge_uniform_matched}),
         {"accuracy",
          "LayerNorm is more accurate on the test set than the released arm without projection.",
          "at step 5000: 0.927 with, 0.849 without (figure 3)",
          {"test accuracy at step 5180: with LayerNorm minus without projection", Test::mean, 10, 0.04},
          judge_accuracy},
         {"accuracy_at_end",
          "At the end of training LayerNorm is still more accurate than the released arm without projection.",
          "at step 17,000: 0.940 with, 0.928 without (figure 3)",
          {"test accuracy at step 17,020: with LayerNorm minus without projection", Test::mean, 10, 0.005},
          judge_accuracy_at_end},
         {"loss_at_end",
          "At the end of training the loss with LayerNorm is still lower.",
          "at step 17,000: 0.164 with, 0.202 without (figure 2a)",
          {"training loss at step 17,020, in each seed: without projection divided by that with LayerNorm",
           Test::mean, 10, 1.1, 1.0},
          judge_loss_at_end},
         as_ours(
             {"accuracy_matched",
              "Without projection, at LayerNorm's length, the accuracy is as high (ours).",
              "no such arm",
              {"test accuracy at step 5180 without projection at length sqrt(d) minus that with LayerNorm",
               Test::mean, 10, -0.01, -0.01},
              judge_accuracy_matched}),
         as_ours(
             {"accuracy_matched_at_end",
              "At the end of training the accuracy without projection, at LayerNorm's length, is higher "
              "(ours).",
              "no such arm",
              {"test accuracy at step 17,020 without projection at length sqrt(d) minus that with LayerNorm",
               Test::mean, 10, 0.005},
              judge_accuracy_matched_at_end,
              "the rule was written after its runs; other seeds have to show it"})},
    .figures = figures};

}  // namespace normscope::lab::brody_majority
