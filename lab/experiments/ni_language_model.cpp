#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "grouped/compare.hpp"
#include "grouped/language.hpp"

namespace normscope::lab::ni_language_model {
namespace {

using namespace grouped;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  return transformers_over_groups(
      size, {.width = 128, .layers = 3, .seeds = 6},
      {{"length", 64}, {"batch", quick ? 8 : 16}, {"pieces", quick ? 16 : 256}},
      quick ? Schedule{.steps = 20, .warmup = 5, .rate = 3e-3, .measure_every = 10}
            : Schedule{.steps = 2000, .warmup = 100, .rate = 2e-3, .measure_every = 200});
}

Finding lower_loss(const Results& results) {
  return compare_groups_of_eight(results, {.metric = "loss", .lower_is_better = true});
}

std::vector<Figure> figures(const Results& results) {
  return {over_steps("loss",
                     "Held-out loss of a small character model over training, by the number of groups its "
                     "LayerNorms are cut into; "
                     "mean and deviation of the seeds.",
                     results,
                     {.series = "groups", .metric = "loss", .title = "held-out loss (nats a character)"})};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "ni-language-model",
    .paper = "Ni 2024",
    .claim =
        "LN-G instead of LN improves a transformer: here a character model of 0.6 million "
        "parameters on Shakespeare.",
    .quick_seconds = 5,
    .full_minutes = 40,
    .scale =
        {.paper = "translation, IWSLT14 De-En, 160,000 pairs of sentences",
         .ours =
             "a character model on one megabyte of text, 3 blocks of width 128, 2000 steps, no translation"},
    .backend = Backend::torch_or_gpu,
    .plan = plan,
    .perform = train_language,
    .claims = {{.name = "lower_loss",
                .says = "LN-G in groups of eight features has a lower held-out loss than LN.",
                .paper =
                    "IWSLT14 De-En, BLEU 35.23 ± 0.07 with LN-G, 35.01 ± 0.10 with LN (the talk's slides)",
                .rule = {"held-out loss with LN minus that with groups of eight, nats", Test::mean,
                         least_seeds, 0.01, 0.0, "a translation model"},
                .judge = lower_loss}},
    .figures = figures};

}  // namespace normscope::lab::ni_language_model
