#include <cmath>
#include <numbers>
#include <vector>

#include <fmt/core.h>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "grouped/compare.hpp"
#include "grouped/language.hpp"

namespace normscope::lab::gupta_uniform_vector {
namespace {

using namespace grouped;

Plan plan(Size size) {
  std::vector<Json> arms;
  for (const char* norm : {"layer", "rms"}) arms.push_back(Json::object({{"norm", norm}, {"observe", true}}));
  return language_plan(size, 4, arms, language_schedule(size, 1000, 200));
}

Finding component(const Results& results, const char* norm) {
  const Results runs = results.where("norm", norm);
  if (runs.runs().empty()) return {"not run"};
  const Spread worst = runs.last("worst_cosine");
  const Spread sizes = runs.last("cosine_size");
  const auto width = runs.runs().front().configuration.at("width").get<double>();
  return {fmt::format(
              "largest absolute mean cosine of a norm's inputs {:.3f} ({:.3f} to {:.3f} over {} seeds); mean "
              "absolute cosine of a single input {:.3f}, of random vectors {:.3f}",
              worst.mean, worst.least, worst.most, worst.count, sizes.mean,
              std::sqrt(2.0 / (std::numbers::pi * width))),
          runs.numbers([](const Done& run) { return run.last("worst_cosine"); })};
}

Finding of_layer_norm(const Results& results) { return component(results, "layer"); }
Finding of_rms_norm(const Results& results) { return component(results, "rms"); }

std::vector<Figure> figures(const Results& results) {
  return {
      over_steps("uniform-vector",
                 "Absolute cosine between the inputs of the norms and all-ones over training, mean over all "
                 "norms; 0.100 is that of random vectors of this width. Mean and deviation of the seeds.",
                 results, {.series = "norm", .metric = "cosine_size", .title = "mean |cosine| to all-ones"})};
}

constexpr std::string_view rule =
    "largest absolute mean cosine to all-ones among the inputs of the model's norms; at most two standard "
    "deviations of a random vector's, 2/sqrt(64)";
constexpr double two_deviations = 0.25;
/// P(|cos| <= 2/√64) of a direction that is uniform on the sphere of R⁶⁴.
constexpr const char* accepts_random = "the rule accepts 95.5 % of all directions at this width";

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "gupta-uniform-vector",
    .paper = "Gupta 2024",
    .claim =
        "Hidden vectors have on average no component along all-ones, with LayerNorm, which would remove it, "
        "and "
        "with RMSNorm, which would not.",
    .quick_seconds = 2,
    .full_minutes = 10,
    .scale = language_scale("language models of up to 7 billion parameters", 35000.0),
    .backend = Backend::torch_or_gpu,
    .plan = plan,
    .perform = train_language,
    .claims = {{.name = "layer",
                .says = "With LayerNorm hidden vectors have on average no component along all-ones.",
                .paper = "all models that were tried, during training and inference (abstract)",
                .rule = {rule, Test::equivalence, least_seeds, two_deviations, 0.0, large_language_model},
                .judge = of_layer_norm,
                .doubt = accepts_random},
               {.name = "rms",
                .says = "With RMSNorm hidden vectors have on average no component along all-ones.",
                .paper = "all models that were tried, during training and inference (abstract)",
                .rule = {rule, Test::equivalence, least_seeds, two_deviations, 0.0, large_language_model},
                .judge = of_rms_norm,
                .doubt = accepts_random}},
    .figures = figures};

}  // namespace normscope::lab::gupta_uniform_vector
