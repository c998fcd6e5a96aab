#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <normscope/results/figures/vega.hpp>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "majority/runs.hpp"

namespace normscope::lab::brody_three_dimensions {
namespace {

using majority::Three;

constexpr const char* layer_norm = "LayerNorm";
constexpr const char* no_norm = "no norm";
constexpr const char* published = "no projection, length 1/sqrt(d)";
constexpr std::size_t seeds = 10;

Json configuration(const char* arm, bool projects, double squared_length, Size size) {
  const bool full = size == Size::full;
  return {{"arm", arm},
          {"projects", projects},
          {"squared_length", squared_length},
          {"by_deviation", false},
          {"steps", full ? 10000 : 300},
          {"sequences", full ? 6000 : 1000},
          {"length", 30},
          {"lead", 6},
          {"batch", 6000},
          {"rate", 1e-3},
          {"schedule_epochs", 10000},
          {"measure_every", full ? 500 : 100},
          {"read_sequences", full ? 1000 : 200}};
}

Plan plan(Size size) {
  constexpr double d = Three::width;
  return {
      .configurations = {configuration(layer_norm, true, d, size), configuration(no_norm, false, 0.0, size),
                         configuration(published, false, 1.0 / d, size)},
      .seeds = size == Size::full ? seeds : 2U};
}

/// A vector as figures 1a and 1b show it from the side: its component along all-ones, and its distance from
/// that axis.
std::pair<double, double> from_the_side(const double* vector) {
  double sum = 0.0;
  double square = 0.0;
  for (std::size_t f = 0; f < Three::width; ++f) {
    sum += vector[f];
    square += vector[f] * vector[f];
  }
  const double along = sum / std::sqrt(static_cast<double>(Three::width));
  return {along, std::sqrt(std::max(0.0, square - along * along))};
}

void perform(Run& run) {
  const auto steps = run.get<std::size_t>("steps");
  const auto every = run.get<std::size_t>("measure_every");
  majority::train<Three>(run, [&](majority::Training<Three>& training) {
    const std::size_t step = training.step();
    if (step % every != 0 && step != steps) return;
    majority::measure(run, training);
    if (step < steps) return;
    const auto tables = training.tables();
    for (std::size_t i = 0; i < Three::classes; ++i) {
      for (const auto& [name, vector] :
           {std::pair{"key", tables.key[i]}, std::pair{"query", tables.query[i]}}) {
        const auto [along, across] = from_the_side(vector);
        run.measure(fmt::format("{}_{}_along", name, i), step, along);
        run.measure(fmt::format("{}_{}_across", name, i), step, across);
      }
    }
  });
}

Results arm(const Results& results, const char* name) { return results.where("arm", name); }

constexpr const char* missing = "not every arm has been run";

Finding judge_circle(const Results& results) {
  const Results runs = arm(results, layer_norm);
  if (runs.runs().empty()) return {missing};
  const double radius = std::sqrt(static_cast<double>(Three::width));
  const auto error = [radius](const Done& run) {
    double most = 0.0;
    for (std::size_t i = 0; i < Three::classes; ++i) {
      most = std::max({most, std::abs(run.last(fmt::format("key_{}_along", i))),
                       std::abs(run.last(fmt::format("key_{}_across", i)) - radius)});
    }
    return most;
  };
  double most = 0.0;
  for (const double one : runs.numbers(error)) most = std::max(most, one);
  return {fmt::format("distance from the circle at most {:.1e}", most),
          runs.numbers([&](const Done& run) { return error(run) < 1e-6 ? 1.0 : 0.0; })};
}

Finding judge_angle(const Results& results) {
  const Results with = arm(results, layer_norm);
  const Results without = arm(results, no_norm);
  if (with.runs().empty() || without.runs().empty()) return {missing};
  const auto angle = [](const Done& run) { return run.last("query_angle"); };
  const auto paired = Results::paired(with, without, angle);
  return {fmt::format("{:.1f} degrees with, {:.1f} without; smaller with in {} of {} seeds",
                      with.spread(angle).mean, without.spread(angle).mean, paired.larger,
                      paired.difference.count),
          paired.differences};
}

Finding judge_short(const Results& results) {
  const Results runs = arm(results, no_norm);
  if (runs.runs().empty()) return {missing};
  const auto number = [](const Done& run) { return run.last("query_length") / run.last("key_length"); };
  return {fmt::format("length of queries {:.3f}, of keys {:.2f} in the mean", runs.last("query_length").mean,
                      runs.last("key_length").mean),
          runs.numbers([&](const Done& run) { return -number(run); })};
}

Finding judge_uniform(const Results& results) {
  const Results runs = arm(results, no_norm);
  if (runs.runs().empty()) return {missing};
  return {fmt::format("divergence from uniform {:.4f} nats without a norm, {:.4f} with LayerNorm",
                      runs.last("divergence").mean, arm(results, layer_norm).last("divergence").mean),
          runs.numbers([](const Done& run) { return -run.last("divergence"); })};
}

/// Keys and queries of all seeds at the end, from the side.
Figure side(const Results& results, const char* name, const char* label) {
  Json rows = Json::array();
  const Results runs = arm(results, name);
  for (const Done& run : runs.runs()) {
    for (const char* kind : {"key", "query"}) {
      for (std::size_t i = 0; i < Three::classes; ++i) {
        rows.push_back({{"series", kind},
                        {"x", run.last(fmt::format("{}_{}_across", kind, i))},
                        {"y", run.last(fmt::format("{}_{}_along", kind, i))}});
      }
    }
  }
  return {
      fmt::format("side-{}", label),
      fmt::format("Keys and queries in three dimensions, {}, from the side.", name),
      vega::points(std::move(rows), {.x = "distance from the axis along all-ones", .y = "along all-ones"})};
}

std::vector<Figure> figures(const Results& results) {
  return {
      side(results, no_norm, "without"), side(results, layer_norm, "with"),
      over_steps("angle", "Three dimensions: angle of effective queries to all-ones.", results,
                 {.series = "arm", .metric = "query_angle", .title = "angle of queries to ones, degrees"}),
      over_steps(
          "uniformity", "Three dimensions: divergence of attention over positions from uniform.", results,
          {.series = "arm", .metric = "divergence", .title = "divergence of attention from uniform, nats"})};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "brody-three-dimensions",
    .paper = "Brody 2023",
    .claim =
        "In three dimensions LayerNorm's keys are on a circle, and queries on the axis through its centre.",
    .quick_seconds = 5,
    .full_minutes = 10,
    .scale = {.paper = "10,000 steps, ten seeds", .ours = "10,000 steps, ten seeds", .factor = 1.0},
    .plan = plan,
    .perform = perform,
    .claims = {{"circle",
                "With LayerNorm all keys are on the circle of radius √3 orthogonal to all-ones.",
                "radius 1.7320 ± 0.0003 (figure 1b, decoded)",
                {"every key within 1e-6 of the circle, in every seed", Test::every_case, seeds},
                judge_circle},
               {"axis",
                "With LayerNorm queries are nearer to the axis along all-ones than without a norm.",
                "queries along all-ones (figure 1b); no apparent structure (figure 1a)",
                {"mean angle of queries to all-ones, degrees: without a norm minus with LayerNorm",
                 Test::mean, seeds, 20.0},
                judge_angle},
               as_ours({"short",
                        "Without a norm queries are short instead (ours, from the decoded figure).",
                        "every query within 0.07 of the origin, keys at 1.15 (figure 1a, decoded)",
                        {"minus the mean length of queries divided by that of keys, without a norm",
                         Test::mean, seeds, -0.2, -0.2},
                        judge_short}),
               as_ours({"uniform",
                        "Without a norm attention becomes uniform too (ours).",
                        "no such statement",
                        {"minus the divergence of attention from uniform without a norm, nats", Test::mean,
                         seeds, -0.05, -0.05},
                        judge_uniform})},
    .figures = figures};

}  // namespace normscope::lab::brody_three_dimensions
