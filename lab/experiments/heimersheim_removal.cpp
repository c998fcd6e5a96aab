#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "grouped/compare.hpp"
#include "grouped/language.hpp"

namespace normscope::lab::heimersheim_removal {
namespace {

using namespace grouped;

Plan plan(Size size) {
  const Schedule schedule = language_schedule(size, 1500, 250);
  std::vector<Json> arms;
  for (const bool removed : {false, true}) {
    arms.push_back(Json::object({{"arm", removed ? "removed" : "kept"},
                                 {"removed_at", removed ? schedule.steps * 2 / 3 : 0},
                                 {"observe", true}}));
  }
  return language_plan(size, 2, arms, schedule);
}

Finding costs_little(const Results& results) {
  return compare_losses(results, "arm", {"LN", "kept"}, {"frozen denominators", "removed"});
}

/// Deviation over mean of each denominator: the relative error of a constant in its place.
std::string denominators(const Done& run) {
  std::string text;
  for (const Metric& metric : run.metrics) {
    const std::string_view suffix = ".sigma_off";
    if (metric.step != run.metrics.back().step || !metric.name.ends_with(suffix)) continue;
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ",
                        metric.name.substr(0, metric.name.size() - suffix.size()), metric.value);
  }
  return text;
}

Finding needs_fine_tuning(const Results& results) {
  const Results removed = results.where("arm", "removed");
  if (removed.runs().empty()) return {"not run"};
  const auto cost = [](const Done& run) { return run.last("loss_after") - run.last("loss_before"); };
  const Spread spread = removed.spread(cost);
  const Results kept = results.where("arm", "kept");
  return {fmt::format(
              "loss higher by {:.3f} ± {:.3f} nats at the step of the removal; deviation over mean of the "
              "denominators at the end of training with LN, seed {}: {}",
              spread.mean, spread.deviation, kept.runs().empty() ? 0 : kept.runs().front().seed,
              kept.runs().empty() ? std::string("not run") : denominators(kept.runs().front())),
          removed.numbers(cost)};
}

std::vector<Figure> figures(const Results& results) {
  return {over_steps(
      "removal-loss",
      "Held-out loss with LayerNorms, and with denominators that are constants from two thirds of the "
      "training on; mean and deviation of the seeds.",
      results, {.series = "arm", .metric = "loss", .title = "held-out loss (nats a character)"})};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "heimersheim-removal",
    .paper = "Heimersheim 2024",
    .claim =
        "The denominators of a trained model's LayerNorms can be replaced by constants; after some "
        "fine-tuning "
        "the loss is nearly unchanged.",
    .quick_seconds = 2,
    .full_minutes = 8,
    .scale = language_scale("GPT-2 small, fine-tuned on 500 million tokens; later GPT-2 XL", 1000.0),
    .backend = Backend::torch_or_gpu,
    .plan = plan,
    .perform = train_language,
    .claims =
        {{.name = "costs_little",
          .says = "After fine-tuning the loss without LayerNorms is within 0.05 nats of that with them.",
          .paper =
              "0.05 nats on OpenWebText and The Pile (abstract); 0.067 and 0.040 in the later work's table",
          .rule = {"held-out loss with LN minus that with constant denominators, both trained on for as "
                   "long, nats",
                   Test::equivalence, least_seeds, 0.05, 0.0, "a pretrained GPT-2"},
          .judge = costs_little},
         as_ours({.name = "needs_fine_tuning",
                  .says = "Without fine-tuning the removal raises the loss by more than 0.05 nats.",
                  .paper = "LayerNorms are removed one after the other during fine-tuning",
                  .rule = {"held-out loss just after the removal minus that just before, nats", Test::mean,
                           least_seeds, 0.05, 0.0, "a pretrained GPT-2"},
                  .judge = needs_fine_tuning})},
    .figures = figures};

}  // namespace normscope::lab::heimersheim_removal
