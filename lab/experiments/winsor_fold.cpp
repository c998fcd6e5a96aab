#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/core.h>

#include <normscope/nets/circle.hpp>
#include <normscope/results/figures.hpp>

#include "frame/experiment.hpp"

namespace normscope::lab::winsor_fold {
namespace {

using std::numbers::pi;

Plan plan(Size) {
  Plan plan;
  for (const double t : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0, 3.0})
    plan.configurations.push_back({{"t", t}, {"points", 100'000}});
  return plan;
}

void perform(Run& run) {
  const auto t = run.get<double>("t");
  const auto points = run.get<std::size_t>("points");
  const auto angle = [&](std::size_t i) {
    return 2.0 * pi * (static_cast<double>(i) + 0.5) / static_cast<double>(points);
  };
  const auto image = [&](std::size_t i) { return std::atan2(std::sin(angle(i)), t + std::cos(angle(i))); };
  // The angle of a point as the shift moves on, by differences in t. The largest is where cos θ = −2t/(1 +
  // t²), which may lie between the points drawn.
  const double step = 1e-6 * std::abs(1.0 - t);
  const auto moved = [&](double theta) {
    const auto at = [theta](double shift) { return std::atan2(std::sin(theta), shift + std::cos(theta)); };
    return std::abs(std::remainder(at(t + step) - at(t - step), 2.0 * pi)) / (2.0 * step);
  };
  double least = 1.0;
  double speed = 0.0;
  double of_weight = 0.0;
  for (std::size_t i = 0; i < points; ++i) {
    least = std::min(least, nets::folded(t, std::cos(angle(i))));
    const double turned = std::remainder(image((i + 1) % points) - image(i), 2.0 * pi);
    speed = std::max(speed, std::abs(turned) * static_cast<double>(points) / (2.0 * pi));
    of_weight = std::max(of_weight, moved(angle(i)));
  }
  run.measure("turns", 1, nets::fold_winding(t));
  run.measure("least", 1, least);
  run.measure("speed", 1, speed);
  run.measure("speed_of_weight", 1, of_weight);
}

double t_of(const Done& run) { return run.configuration.at("t").get<double>(); }

Finding folds_at_one(const Results& results) {
  std::string ours;
  bool holds = true;
  for (const Done& run : results.runs()) {
    holds = holds && run.last("turns") == (t_of(run) < 1.0 ? 1.0 : 0.0);
    ours += fmt::format("{}{} at t = {}", ours.empty() ? "turns around the origin: " : ", ",
                        run.last("turns"), t_of(run));
  }
  return {std::move(ours), one_case(holds)};
}

Finding divot(const Results& results) {
  std::string ours;
  bool holds = true;
  for (const Done& run : results.runs()) {
    if (t_of(run) <= 1.0) continue;
    holds = holds && std::abs(run.last("least") - nets::fold_minimum(t_of(run))) < 1e-4;
    ours +=
        fmt::format("{}{:.4f} at t = {}", ours.empty() ? "least x: " : ", ", run.last("least"), t_of(run));
  }
  return {std::move(ours), one_case(holds)};
}

Finding speeds(const Results& results, const char* metric, double (*formula)(double)) {
  std::string ours;
  bool holds = true;
  for (const Done& run : results.runs()) {
    holds = holds && std::abs(run.last(metric) / formula(t_of(run)) - 1.0) < 1e-4;
    ours += fmt::format("{}{:.3f} at t = {}", ours.empty() ? "largest speed: " : ", ", run.last(metric),
                        t_of(run));
  }
  return {std::move(ours), one_case(holds)};
}

Finding fast_before(const Results& results) {
  return speeds(results, "speed_of_weight", nets::fold_speed_of_shift);
}

Finding spreads_out(const Results& results) { return speeds(results, "speed", nets::fold_speed); }

std::vector<Figure> figures(const Results&) {
  return {{"fold", "A circle's points after a shift and normalization, and the activation curves.",
           figures::folded_circle()}};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "winsor-fold",
    .paper = "Winsor 2022",
    .claim = "Normalization after a shift by t folds a circle, with a divot at t = 2.",
    .quick_seconds = 1,
    .full_minutes = 0.02,
    .scale = {.paper = "figures and animations; no size is stated", .ours = "100,000 points, seven shifts"},
    .plan = plan,
    .perform = perform,
    .claims =
        {{.name = "folds_at_one",
          .says = "The fold happens at t = 1.",
          .paper = "an animation",
          .rule = {"the shifted circle makes one turn around the origin for every t below 1 and none above"},
          .judge = folds_at_one},
         {.name = "divot",
          .says = "Near t = 2 the curve tends to 1 at both ends and dips in between.",
          .paper = "a figure; by our formula x dips to sqrt(1 - 1/t^2) = 0.8660 at t = 2",
          .rule = {"the least x is sqrt(1 - 1/t^2) to 1e-4 for every t above 1"},
          .judge = divot},
         {.name = "fast_before",
          .says = "Relative to the weights, points move fast just before the fold is complete.",
          .paper = "about an animation; by our formula max |dθ'/dt| = 1/|1 - t^2|",
          .rule = {"the largest |dθ'/dt| over the points, by differences in t, is 1/|1 - t^2|, relative "
                   "to 1e-4, for every t"},
          .judge = fast_before},
         as_ours(
             {.name = "spreads_out",
              .says = "At a fixed shift, neighbouring points are spread by at most 1/|1 - t| (ours).",
              .paper = "no such statement",
              .rule = {"the largest |dθ'/dθ| over the points is 1/|1 - t|, relative to 1e-4, for every t"},
              .judge = spreads_out})},
    .figures = figures};

}  // namespace normscope::lab::winsor_fold
