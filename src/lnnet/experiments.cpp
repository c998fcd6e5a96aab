#include <normscope/lnnet/experiments.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/lnnet/circle.hpp>

#include <normscope/lnnet/circle_figures.hpp>

namespace normscope::lnnet {
namespace {

constexpr double pi = 3.14159265358979323846;
/// Points that a share or a smallest value is counted over.
constexpr std::size_t samples = 100'000;
/// Between a count and its formula.
constexpr double tolerance = 1e-4;

double angle(std::size_t i) {
  return 2.0 * pi * (static_cast<double>(i) + 0.5) / static_cast<double>(samples);
}

Outcome run_stretch() {
  constexpr double level = 0.9;
  std::string ours;
  bool holds = true;
  for (const double t : {0.2, 1.0, 2.0, 5.0}) {
    std::size_t beyond = 0;
    for (std::size_t i = 0; i < samples; ++i)
      beyond += std::abs(stretched(t, std::cos(angle(i)))) > level ? 1 : 0;
    const double share = static_cast<double>(beyond) / static_cast<double>(samples);
    holds = holds && std::abs(share - stretched_share(t, level)) < tolerance;
    ours += fmt::format("{}{:.2f} % at t = {}", ours.empty() ? "beyond 0.9: " : ", ", 100.0 * share, t);
  }
  return {ours, holds, stretched_circle_figure()};
}

Outcome run_fold() {
  const double t = 2.0;
  double least = 1.0;
  for (std::size_t i = 0; i < samples; ++i) least = std::min(least, folded(t, std::cos(angle(i))));
  const int before = fold_winding(0.99);
  const int after = fold_winding(1.01);
  const bool holds = before == 1 && after == 0 && std::abs(least - fold_minimum(t)) < tolerance;
  return {fmt::format("{} turn around the origin at t = 0.99, {} at t = 1.01; least x at t = 2: {:.4f}",
                      before, after, least),
          holds, folded_circle_figure()};
}

Outcome run_surface() {
  double largest = 0.0;
  for (std::size_t i = 0; i < samples; ++i) {
    const double x = std::cos(angle(i));
    const double y = std::sin(angle(i));
    for (const double t : {0.2, 0.5, 2.0, 5.0}) {
      largest = std::max({largest, std::abs(stretched(t, x) - surface(t * x, y)),
                          std::abs(folded(t, x) - surface(t + x, y))});
    }
  }
  return {fmt::format("largest distance of a curve from the surface: {:.1e}", largest), largest < 1e-14,
          circle_surface_figure()};
}

}  // namespace

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all{
      {"stretch", "Winsor 2022",
       "Normalization after a stretch by t pushes a circle's points to x = -1 and 1.",
       "(2/pi) atan(t sqrt(1 - 0.9^2)/0.9) of them beyond 0.9: 6.15 % at t = 0.2, 75.07 % at t = 5",
       run_stretch},
      {"fold", "Winsor 2022",
       "Normalization after a shift by t folds a circle, and at t = 2 there is a divot.",
       "the fold happens at t = 1; x dips to sqrt(1 - 1/t^2) = 0.8660 at t = 2", run_fold},
      {"surface", "Winsor 2022", "Every activation curve is a slice of one surface, x/sqrt(x^2 + y^2).",
       "no distance but rounding", run_surface}};
  return all;
}

const Experiment* find_experiment(std::string_view name) {
  for (const Experiment& experiment : experiments()) {
    if (experiment.name == name) return &experiment;
  }
  return nullptr;
}

}  // namespace normscope::lnnet
