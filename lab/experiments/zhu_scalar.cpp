#include <vector>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "grouped/compare.hpp"
#include "grouped/language.hpp"

// zhu-elementwise with the learned scalar that DyT's authors multiply the embeddings of language models with.
namespace normscope::lab::zhu_scalar {
namespace {

using namespace grouped;

/// The scalar begins at the root of the width, 64.
constexpr double root_of_width = 8.0;

Plan plan(Size size) {
  std::vector<Json> arms{Json::object({{"arm", "LN"}, {"norm", "layer"}})};
  for (const char* norm : {"dyt", "derf"}) {
    arms.push_back(
        Json::object({{"arm", norm == std::string_view("dyt") ? "DyT with scalar" : "Derf with scalar"},
                      {"norm", norm},
                      {"embedding_scalar", root_of_width}}));
  }
  return language_plan(size, 2, arms, language_schedule(size, 1500, 250));
}

std::vector<Figure> figures(const Results& results) {
  return {over_steps(
      "loss",
      "Held-out loss with LayerNorm, and with DyT and Derf behind embeddings that a learned scalar "
      "multiplies; mean and deviation of the seeds.",
      results, {.series = "arm", .metric = "loss", .title = "held-out loss (nats a character)"})};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "zhu-scalar",
    .paper = "Zhu 2025",
    .claim =
        "With a learned scalar after the embedding, language models train as well with DyT or Derf as with "
        "LayerNorm.",
    .quick_seconds = 2,
    .full_minutes = 10,
    .scale = language_scale("LLaMA of 7 to 70 billion parameters (DyT); GPT-2 (Derf)", 50000.0),
    .backend = Backend::torch_or_gpu,
    .plan = plan,
    .perform = train_language,
    .claims =
        {{.name = "dyt_matches",
          .says = "With the scalar the loss with DyT differs from that with LN by at most 0.02 nats.",
          .paper = "the same performance or better (abstract)",
          .rule =
              {"seeds from 301 on: held-out loss with LN minus that with DyT and a learned scalar after the "
               "embedding, initially the root of the width, nats",
               Test::equivalence, least_seeds, 0.02, 0.0, large_language_model},
          .judge = dyt_for_layer_norm},
         {.name = "derf_matches",
          .says = "With the scalar the loss with Derf differs from that with LN by at most 0.02 nats.",
          .paper = "Chen and others 2025: better than LN in images, speech and DNA (abstract)",
          .rule =
              {"seeds from 301 on: held-out loss with LN minus that with Derf and a learned scalar after the "
               "embedding, initially the root of the width, nats",
               Test::equivalence, least_seeds, 0.02, 0.0, large_language_model},
          .judge = derf_for_layer_norm}},
    .figures = figures};

}  // namespace normscope::lab::zhu_scalar
