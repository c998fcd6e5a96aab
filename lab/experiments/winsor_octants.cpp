#include <fmt/core.h>

#include <normscope/lnnet/tasks.hpp>

#include "nets/training.hpp"

namespace normscope::lab {
namespace {

using lnnet::Schedule;

constexpr std::size_t full_seeds = 20;
constexpr std::size_t least_seeds = 8;
constexpr double solved_at = 0.98;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1 : full_seeds};
  for (const std::size_t depth : {3, 4, 5}) {
    Json configuration = nets::to_json(
        {.depth = depth, .rate = 0.03, .schedule = Schedule::linear, .steps = quick ? 1000U : 10000U});
    configuration["rows"] = 1000;
    configuration["test"] = 4000;
    plan.configurations.push_back(std::move(configuration));
  }
  return plan;
}

void perform(Run& run) {
  const auto data =
      std::make_shared<const lnnet::Dataset>(lnnet::octants(run.get<std::size_t>("rows"), run.seed()));
  const lnnet::Dataset test = lnnet::octants(run.get<std::size_t>("test"), run.seed() + 1'000'000);
  nets::train(run, data, &test);
}

Finding solved(const Results& results) {
  std::string ours;
  std::size_t most = 0;
  std::size_t of = 0;
  for (const Json& depth : results.all("depth")) {
    const Results runs = results.where("depth", depth);
    const std::size_t count = nets::above(runs, "test_accuracy", solved_at);
    ours += fmt::format("{}{} norms: {} of {} above 98 %, best {:.1f} %", ours.empty() ? "" : "; ",
                        depth.get<int>(), count, runs.runs().size(), 100.0 * runs.last("test_accuracy").most);
    if (count > most) most = count;
    of = std::max(of, runs.runs().size());
  }
  if (!results.full(least_seeds)) return {std::move(ours), std::nullopt};
  return {std::move(ours), 2 * most >= of};
}

Finding several_transitions(const Results& results) {
  const std::size_t all = results.runs().size();
  const std::size_t one = nets::above(results, "transitions", 0.5);
  const std::size_t several = nets::above(results, "transitions", 1.5);
  std::string ours =
      fmt::format("of {} trainings {} have one or more, {} have two or more", all, one, several);
  if (!results.full(least_seeds)) return {std::move(ours), std::nullopt};
  return {std::move(ours), 2 * several >= all};
}

std::vector<Figure> figures(const Results& results) {
  const Results runs = results.where("depth", 4);
  if (runs.runs().empty()) return {};
  return {
      nets::curves(runs, "curves",
                   "Loss and accuracy of nets of width 3 with four norms on a sphere in eight parts, over "
                   "seeds; a tick where the accuracy jumps.")};
}

}  // namespace

namespace experiments {

extern const Experiment winsor_octants;
const Experiment winsor_octants{
    .name = "winsor-octants",
    .paper = "Winsor 2022",
    .claim =
        "Deeper nets of width 3 with norms as the only nonlinearity separate the octants of a sphere, after "
        "several phase transitions.",
    .quick_seconds = 3,
    .full_minutes = 4,
    .plan = plan,
    .perform = perform,
    .claims = {{.name = "solved",
                .says = "Width 3 with more norms separates the octants.",
                .paper = "a figure; depth and accuracy are not given",
                .rule =
                    "with 3, 4 or 5 norms more than 98 % of 4000 new points in at least half of at least 8 "
                    "trainings",
                .judge = solved},
               {.name = "several_transitions",
                .says = "One training has several phase transitions.",
                .paper = "a figure of one training",
                .rule =
                    "lnnet::transitions finds two or more in at least half of the trainings, 8 seeds or more",
                .judge = several_transitions}},
    .figures = figures};

}  // namespace experiments
}  // namespace normscope::lab
