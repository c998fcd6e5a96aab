#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "grouped/compare.hpp"
#include "grouped/language.hpp"

namespace normscope::lab::kim_peri_ln {
namespace {

using namespace grouped;

constexpr std::size_t layers = 6;

Plan plan(Size size) {
  std::vector<Json> arms;
  for (const std::string arm : {"Pre-LN", "Peri-LN", "Pre-LN with QK-norm"}) {
    arms.push_back(Json::object({{"arm", arm},
                                 {"peri", arm == "Peri-LN"},
                                 {"qk_norm", arm == "Pre-LN with QK-norm"},
                                 {"observe", true}}));
  }
  return language_plan(size, layers, arms, language_schedule(size, 1000, 200));
}

/// Mean square of the stream before a block, or behind the last.
double stream(const Done& run, std::size_t block) {
  return run.last(block < layers ? fmt::format("block{}.norm1.mean_square", block) : "norm.mean_square");
}

/// What the last third of the blocks adds to the mean square over what the first third adds: 1 for linear
/// growth. Between 2⁻¹⁰ and 2¹⁰, so that a third without growth counts as one with little.
double acceleration(const Done& run) {
  const double last = stream(run, layers) - stream(run, layers - layers / 3);
  const double first = stream(run, layers / 3) - stream(run, 0);
  if (!(last > 0.0)) return 0x1p-10;
  return first > 0.0 ? std::clamp(last / first, 0x1p-10, 0x1p10) : 0x1p10;
}

Finding log_ratio(const Results& one, const Results& other, double (*number)(const Done&), const char* what) {
  if (one.runs().empty() || other.runs().empty()) return {"not run"};
  const Results::Paired paired =
      Results::paired(other, one, [&](const Done& run) { return std::log2(number(run)); });
  if (paired.differences.empty()) return {"no seed has both"};
  const auto shown = [&](const Results& runs) {
    const Spread spread = runs.spread(number);
    return fmt::format("{} {:.3g} ({:.3g} to {:.3g})",
                       runs.runs().front().configuration.at("arm").get<std::string>(), spread.mean,
                       spread.least, spread.most);
  };
  return {fmt::format("{}: {}, {}; the first is 2^({:.2f} ± {:.2f}) times the second", what, shown(one),
                      shown(other), paired.difference.mean, paired.difference.deviation),
          paired.differences};
}

Finding balanced_growth(const Results& results) {
  return log_ratio(results.where("arm", "Pre-LN"), results.where("arm", "Peri-LN"), acceleration,
                   "growth of the stream in the last third of the blocks over that in the first");
}

Finding smaller_scores(const Results& results) {
  return log_ratio(
      results.where("arm", "Pre-LN"), results.where("arm", "Pre-LN with QK-norm"),
      [](const Done& run) { return run.last("largest_score"); }, "largest attention score");
}

std::vector<Figure> figures(const Results& results) {
  return {over_steps(
              "stream-size",
              "Mean square of the residual stream after six blocks over training; mean and deviation of the "
              "seeds.",
              results,
              {.series = "arm",
               .metric = "norm.mean_square",
               .title = "mean square before the last norm",
               .logarithmic = true}),
          over_steps(
              "largest-score",
              "Largest absolute attention score over training; mean and deviation of the seeds.", results,
              {.series = "arm", .metric = "largest_score", .title = "largest score", .logarithmic = true})};
}

constexpr std::string_view missing = "a model of a billion parameters";

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "kim-peri-ln",
    .paper = "Kim 2025",
    .claim =
        "A norm after every sublayer as well (Peri-LN) makes the residual stream grow linearly through "
        "depth; "
        "norms of queries and keys bound the scores.",
    .quick_seconds = 4,
    .full_minutes = 15,
    .scale = language_scale("language models of up to 3.2 billion parameters", 10000.0),
    .backend = Backend::torch_or_gpu,
    .plan = plan,
    .perform = train_language,
    .claims = {{.name = "balanced_growth",
                .says = "Through depth, growth of the stream's mean square accelerates more with Pre-LN than "
                        "with Peri-LN.",
                .paper = "exponential growth with Pre-LN, linear with Peri-LN",
                .rule = {"log2 of (growth in the last third of the blocks over that in the first), Pre-LN "
                         "minus Peri-LN",
                         Test::mean, least_seeds, 1.0, 0.0, missing},
                .judge = balanced_growth},
               {.name = "smaller_scores",
                .says = "The largest attention score is smaller with QK-norm.",
                .paper = "Henry and others 2020: without it scores grow until the softmax saturates",
                .rule = {"log2 of the largest attention score, Pre-LN minus Pre-LN with QK-norm", Test::mean,
                         least_seeds, 1.0, 0.0, missing},
                .judge = smaller_scores}},
    .figures = figures};

}  // namespace normscope::lab::kim_peri_ln
