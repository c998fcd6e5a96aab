#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/core.h>

#include <normscope/nets/circle.hpp>
#include <normscope/results/figures.hpp>

#include "frame/experiment.hpp"

namespace normscope::lab::winsor_surface {
namespace {

using std::numbers::pi;

Plan plan(Size) {
  Plan plan;
  for (const double t : {0.2, 0.5, 2.0, 5.0}) plan.configurations.push_back({{"t", t}, {"points", 100'000}});
  return plan;
}

void perform(Run& run) {
  const auto t = run.get<double>("t");
  const auto points = run.get<std::size_t>("points");
  double largest = 0.0;
  for (std::size_t i = 0; i < points; ++i) {
    const double angle = 2.0 * pi * (static_cast<double>(i) + 0.5) / static_cast<double>(points);
    const double x = std::cos(angle);
    const double y = std::sin(angle);
    largest = std::max({largest, std::abs(nets::stretched(t, x) - nets::surface(t * x, y)),
                        std::abs(nets::folded(t, x) - nets::surface(t + x, y))});
  }
  run.measure("distance", 1, largest);
}

Finding slices(const Results& results) {
  if (results.runs().empty()) return {"not run"};
  const double largest = results.last("distance").most;
  return {fmt::format("largest distance of a curve from the surface: {:.1e}", largest),
          one_case(largest < 1e-14)};
}

std::vector<Figure> figures(const Results&) {
  return {{"surface", "x/sqrt(x^2 + y^2), and the curves along which stretches and shifts slice it.",
           figures::circle_surface()}};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "winsor-surface",
    .paper = "Winsor 2022",
    .claim = "Every activation curve is a slice of one surface, x/sqrt(x^2 + y^2).",
    .quick_seconds = 1,
    .full_minutes = 0.02,
    .scale = {.paper = "a figure; no size is stated", .ours = "100,000 points, four curves"},
    .plan = plan,
    .perform = perform,
    .claims = {{.name = "slices",
                .says = "The curves of stretch and fold lie on the surface.",
                .paper = "a figure",
                .rule = {"no distance beyond rounding, 1e-14, at any of 100,000 points for every t"},
                .judge = slices}},
    .figures = figures};

}  // namespace normscope::lab::winsor_surface
