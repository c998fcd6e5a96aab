#include <vector>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "grouped/compare.hpp"
#include "grouped/language.hpp"

namespace normscope::lab::zhu_elementwise {
namespace {

using namespace grouped;

Plan plan(Size size) {
  std::vector<Json> arms;
  for (const char* norm : {"layer", "dyt", "derf"}) arms.push_back(Json::object({{"norm", norm}}));
  return language_plan(size, 2, arms, language_schedule(size, 1500, 250));
}

Finding derf_over_dyt(const Results& results) {
  return compare_losses(results, "norm", {"DyT", "dyt"}, {"Derf", "derf"});
}

std::vector<Figure> figures(const Results& results) {
  return {
      over_steps("elementwise-loss",
                 "Held-out loss with LayerNorm, DyT and Derf over training; mean and deviation of the seeds.",
                 results, {.series = "norm", .metric = "loss", .title = "held-out loss (nats a character)"})};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "zhu-elementwise",
    .paper = "Zhu 2025",
    .claim = "Transformers train as well with DyT (tanh) or Derf (erf) of each feature as with LayerNorm.",
    .quick_seconds = 2,
    .full_minutes = 10,
    .scale = language_scale("LLaMA of 7 to 70 billion parameters and others (DyT); GPT-2 and others (Derf)",
                            50000.0),
    .backend = Backend::torch_or_gpu,
    .plan = plan,
    .perform = train_language,
    .claims =
        {{.name = "dyt_matches",
          .says = "The loss with DyT differs from that with LN by at most 0.02 nats.",
          .paper = "the same performance or better (abstract)",
          .rule = {"held-out loss with LN minus that with DyT, nats", Test::equivalence, least_seeds, 0.02,
                   0.0, large_language_model},
          .judge = dyt_for_layer_norm},
         {.name = "derf_matches",
          .says = "The loss with Derf differs from that with LN by at most 0.02 nats.",
          .paper = "Chen and others 2025: better than LN in images, speech and DNA (abstract)",
          .rule = {"held-out loss with LN minus that with Derf, nats", Test::equivalence, least_seeds, 0.02,
                   0.0, large_language_model},
          .judge = derf_for_layer_norm},
         {.name = "derf_over_dyt",
          .says = "The loss with Derf is lower than with DyT.",
          .paper = "Chen and others 2025: better than DyT across domains (abstract)",
          .rule = {"held-out loss with DyT minus that with Derf, nats", Test::mean, least_seeds, 0.005, 0.0,
                   large_language_model},
          .judge = derf_over_dyt,
          .doubt = "both are far behind LN here, without the paper's scalar after the embedding and with one "
                   "initial α"}},
    .figures = figures};

}  // namespace normscope::lab::zhu_elementwise
