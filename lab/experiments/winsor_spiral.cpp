#include <fmt/core.h>

#include <normscope/nets/tasks.hpp>

#include "ln_nets/training.hpp"

namespace normscope::lab::winsor_spiral {
namespace {

using nets::Activation;
using nets::TrainSpec;

constexpr std::size_t full_seeds = 20;
constexpr std::size_t least_seeds = 10;
constexpr double solved_at = 0.98;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 2 : full_seeds};
  for (const TrainSpec& spec :
       {TrainSpec{}, TrainSpec{.depth = 3}, TrainSpec{.activation = Activation::none, .steps = 4000}}) {
    Json configuration = ln_nets::to_json(spec);
    configuration["rows"] = 300;
    configuration["test"] = 4000;
    if (quick) configuration["steps"] = 2000;
    plan.configurations.push_back(std::move(configuration));
  }
  return plan;
}

void perform(Run& run) {
  const auto data =
      std::make_shared<const nets::Dataset>(nets::spiral(run.get<std::size_t>("rows"), run.seed()));
  const nets::Dataset test = nets::spiral(run.get<std::size_t>("test"), run.seed() + 1'000'000);
  ln_nets::train(run, data, {{"test_accuracy", test}});
}

Results normed(const Results& results, std::size_t depth) {
  return results.where("activation", "norm").where("depth", depth);
}

std::string accuracies(const Results& runs) {
  const Spread spread = runs.last("test_accuracy");
  return fmt::format("{} of {} above 98 %, best {:.2f}, median {:.2f}, worst {:.2f} %",
                     ln_nets::above(runs, "test_accuracy", solved_at), spread.count, 100.0 * spread.most,
                     100.0 * ln_nets::median(runs, "test_accuracy"), 100.0 * spread.least);
}

Finding solved(const Results& results) {
  const Results runs = normed(results, 2);
  if (runs.runs().empty()) return {"not run"};
  std::string ours =
      fmt::format("{}; median step to 95 % {:.0f}", accuracies(runs), ln_nets::median(runs, "to_95"));
  return {std::move(ours),
          runs.numbers([](const Done& run) { return run.last("test_accuracy") > solved_at ? 1.0 : 0.0; })};
}

Finding needs_norm(const Results& results) {
  const Results runs = results.where("activation", "none");
  if (runs.runs().empty()) return {"not run"};
  std::string ours = accuracies(runs);
  return {std::move(ours),
          runs.numbers([](const Done& run) { return run.last("test_accuracy") < 0.7 ? 1.0 : 0.0; })};
}

Finding phase_transition(const Results& results) {
  const Results runs = normed(results, 2);
  if (runs.runs().empty()) return {"not run"};
  const std::size_t jumped = ln_nets::above(runs, "transitions", 0.5);
  std::string ours = fmt::format("{} of {} trainings have one; median of the largest gain {:.3f}", jumped,
                                 runs.runs().size(), ln_nets::median(runs, "gain"));
  return {std::move(ours),
          runs.numbers([](const Done& run) { return run.last("transitions") > 0.5 ? 1.0 : 0.0; })};
}

std::vector<Figure> figures(const Results& results) {
  std::vector<Figure> all;
  const Results runs = normed(results, 2);
  if (!runs.runs().empty()) {
    all.push_back(
        ln_nets::curves(runs, "curves",
                        "Loss and accuracy of nets of width 3 with two norms on the spiral, over seeds; a "
                        "tick where the accuracy jumps."));
  }
  return all;
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "winsor-spiral",
    .paper = "Winsor 2022",
    .claim =
        "A net of width 3 whose only nonlinearity is two normalizations separates the arms of a spiral, "
        "after "
        "a phase transition.",
    .quick_seconds = 3,
    .full_minutes = 2,
    .scale = {.paper = "width 3, two layers; samples and steps are not stated",
              .ours = "300 samples, 8000 steps (4000 without norms)"},
    .plan = plan,
    .perform = perform,
    .claims = {{.name = "solved",
                .says = "Width 3 and two norms separate the arms.",
                .paper = "a figure; sizes and accuracy are not given",
                .rule = {"trainings that classify more than 98 % of 4000 new points", Test::share,
                         least_seeds, 0.8, 0.5},
                .judge = solved},
               {.name = "needs_norm",
                .says = "The norms are necessary.",
                .paper = "about normalization as the only nonlinearity",
                .rule = {"no training without norms reaches 70 % of new points", Test::every_case,
                         least_seeds},
                .judge = needs_norm,
                .measured = true},
               {.name = "phase_transition",
                .says = "Accuracy stays on a plateau and then jumps.",
                .paper = "a figure of one training",
                // The words of a rule are hashed; functions have the names that they had when it was fixed.
                .rule = {"trainings in which lnnet::transitions finds one (0.15 within 100 steps, above the "
                         "best before, from step 200 on)",
                         Test::share, least_seeds, 0.5, 0.25},
                .judge = phase_transition}},
    .figures = figures};

}  // namespace normscope::lab::winsor_spiral
