#include <algorithm>

#include <fmt/core.h>

#include <normscope/nets/tasks.hpp>

#include "ln_nets/training.hpp"

namespace normscope::lab::winsor_octants {
namespace {

using nets::Schedule;

constexpr std::size_t full_seeds = 20;
constexpr std::size_t least_seeds = 8;
constexpr double solved_at = 0.98;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1 : full_seeds};
  for (const std::size_t depth : {3, 4, 5}) {
    Json configuration = ln_nets::to_json(
        {.depth = depth, .rate = 0.03, .schedule = Schedule::linear, .steps = quick ? 1000U : 10000U});
    configuration["rows"] = 1000;
    configuration["test"] = 4000;
    plan.configurations.push_back(std::move(configuration));
  }
  return plan;
}

void perform(Run& run) {
  const auto data =
      std::make_shared<const nets::Dataset>(nets::octants(run.get<std::size_t>("rows"), run.seed()));
  const nets::Dataset test = nets::octants(run.get<std::size_t>("test"), run.seed() + 1'000'000);
  ln_nets::train(run, data, {{"test_accuracy", test}});
}

Finding solved(const Results& results) {
  std::string ours;
  for (const Json& depth : results.all("depth")) {
    const Results runs = results.where("depth", depth);
    ours += fmt::format("{}{} norms: {} of {} above 98 %, best {:.1f} %", ours.empty() ? "" : "; ",
                        depth.get<int>(), ln_nets::above(runs, "test_accuracy", solved_at),
                        runs.runs().size(), 100.0 * runs.last("test_accuracy").most);
  }
  return {std::move(ours),
          results.numbers([](const Done& run) { return run.last("test_accuracy") > solved_at ? 1.0 : 0.0; })};
}

std::size_t plateaus_of(const Done& run, const ln_nets::PlateauConstants& constants = {}) {
  return ln_nets::plateaus(ln_nets::curve(run, "loss"), ln_nets::steps_between_points(run.configuration),
                           constants)
      .size();
}

/// Number of runs with that many plateaus.
std::ptrdiff_t having(const Results& results, std::size_t least,
                      const ln_nets::PlateauConstants& constants = {}) {
  return std::count_if(results.runs().begin(), results.runs().end(),
                       [&](const Done& run) { return plateaus_of(run, constants) >= least; });
}

constexpr ln_nets::PlateauConstants other_constants[] = {
    {.fall_steps = 600}, {.fall_to = 0.8}, {.plateau_steps = 300}};

Finding one_has_several(const Results& results) {
  std::string ours = fmt::format("{} by the rule's constants", having(results, 2));
  std::vector<double> effects = one_case(having(results, 2) > 0);
  for (const ln_nets::PlateauConstants& constants : other_constants) {
    const std::ptrdiff_t found = having(results, 2, constants);
    ours += fmt::format(", {}", found);
    effects.push_back(found > 0 ? 1.0 : 0.0);
  }
  return {ours + fmt::format(" with one other constant each, of {} trainings", results.runs().size()),
          std::move(effects)};
}

Finding several_transitions(const Results& results) {
  return {
      fmt::format(
          "of {} trainings {} have one plateau or more that ends with a fall, {} have two or more; with one "
          "other constant each, {} (600 steps for the fall), {} (a fall by 20 %), {} (plateaus of 300 steps)",
          results.runs().size(), having(results, 1), having(results, 2),
          having(results, 2, other_constants[0]), having(results, 2, other_constants[1]),
          having(results, 2, other_constants[2])),
      results.numbers([](const Done& run) { return plateaus_of(run) >= 2 ? 1.0 : 0.0; })};
}

std::vector<Figure> figures(const Results& results) {
  const Results runs = results.where("depth", 4);
  if (runs.runs().empty()) return {};
  return {
      ln_nets::curves(runs, "curves",
                      "Loss and accuracy of nets of width 3 with four norms on a sphere in eight parts, over "
                      "seeds; a tick where the accuracy jumps.")};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "winsor-octants",
    .paper = "Winsor 2022",
    .claim =
        "Deeper nets of width 3 with norms as the only nonlinearity separate the octants of a sphere, after "
        "several phase transitions.",
    .quick_seconds = 3,
    .full_minutes = 4,
    .scale = {.paper = "figures of one training; depth, samples and steps are not stated",
              .ours = "three depths, 1000 samples, 10,000 steps"},
    .plan = plan,
    .perform = perform,
    .claims =
        {{.name = "solved",
          .says = "Width 3 with more norms separates the octants.",
          .paper = "a figure; depth and accuracy are not given",
          .rule = {"trainings with 3, 4 or 5 norms that classify more than 98 % of 4000 new points",
                   Test::share, least_seeds, 0.5, 0.1},
          .judge = solved},
         {.name = "one_has_several",
          .says = "There are trainings with several phase transitions, as the post's.",
          .paper = "a figure of one training",
          .rule =
              {"of 60 trainings one or more has two plateaus of the loss that end with a fall, by the "
               "constants of nets::plateaus and with each of three others: 600 steps for the fall, a fall "
               "by 20 %, plateaus of 300 steps"},
          .judge = one_has_several,
          .measured = true},
         as_ours(
             {.name = "several_transitions",
              .says = "Most trainings have several (ours; the post shows one).",
              .paper = "no statement of how many",
              // The words of a rule are hashed; functions have the names that they had when it was fixed.
              .rule = {"trainings whose loss has two plateaus or more that end with a fall: for 600 steps "
                       "medians over 300 steps change by at most 15 %, then fall by 30 % within 300 steps "
                       "(nets::plateaus)",
                       Test::share, least_seeds, 0.5, 0.0},
              .judge = several_transitions,
              .doubt = "how many have several depends on the constants of the rule"})},
    .figures = figures};

}  // namespace normscope::lab::winsor_octants
