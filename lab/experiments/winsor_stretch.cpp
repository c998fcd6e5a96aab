#include <cmath>
#include <numbers>

#include <fmt/core.h>

#include <normscope/nets/circle.hpp>
#include <normscope/results/figures.hpp>

#include "frame/experiment.hpp"

namespace normscope::lab::winsor_stretch {
namespace {

using std::numbers::pi;
constexpr double level = 0.9;

Plan plan(Size) {
  Plan plan;
  for (const double t : {0.2, 1.0, 2.0, 5.0}) plan.configurations.push_back({{"t", t}, {"points", 100'000}});
  return plan;
}

void perform(Run& run) {
  const auto t = run.get<double>("t");
  const auto points = run.get<std::size_t>("points");
  std::size_t beyond = 0;
  for (std::size_t i = 0; i < points; ++i) {
    const double angle = 2.0 * pi * (static_cast<double>(i) + 0.5) / static_cast<double>(points);
    beyond += std::abs(nets::stretched(t, std::cos(angle))) > level ? 1 : 0;
  }
  run.measure("share", 1, static_cast<double>(beyond) / static_cast<double>(points));
  run.measure("formula", 1, nets::stretched_share(t, level));
}

Finding gathers(const Results& results) {
  std::string ours;
  bool holds = true;
  for (const Done& run : results.runs()) {
    holds = holds && std::abs(run.last("share") - run.last("formula")) < 1e-4;
    ours += fmt::format("{}{:.2f} % at t = {}", ours.empty() ? "beyond 0.9: " : ", ",
                        100.0 * run.last("share"), run.configuration.at("t").get<double>());
  }
  return {std::move(ours), one_case(holds)};
}

std::vector<Figure> figures(const Results&) {
  return {{"stretch", "A circle's points after a stretch and normalization, and the activation curves.",
           figures::stretched_circle()}};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "winsor-stretch",
    .paper = "Winsor 2022",
    .claim = "Normalization after a stretch by t pushes a circle's points to x = -1 and 1.",
    .quick_seconds = 1,
    .full_minutes = 0.02,
    .scale = {.paper = "figures and animations; no size is stated", .ours = "100,000 points, four stretches"},
    .plan = plan,
    .perform = perform,
    .claims =
        {{.name = "gathers",
          .says = "The stretch gathers the points at both ends.",
          .paper = "an animation; by our formula 6.15 % beyond 0.9 at t = 0.2, 75.07 % at t = 5",
          .rule =
              {"the share of points beyond 0.9 is (2/pi) atan(t sqrt(1 - 0.9^2)/0.9) to 1e-4 for every t"},
          .judge = gathers}},
    .figures = figures};

}  // namespace normscope::lab::winsor_stretch
