#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/random.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/scatter.hpp>

#include "frame/experiment.hpp"

namespace normscope::lab::ni_separability {
namespace {

using nets::linear_ratio;
using nets::sum_of_squares_ratio;

struct Samples {
  std::size_t width = 0;
  std::vector<double> x{};
  std::vector<std::size_t> labels{};

  [[nodiscard]] MatrixView<const double> view() const { return {x.data(), labels.size(), width}; }
  [[nodiscard]] double ratio() const { return sum_of_squares_ratio(view(), labels, 1); }
  [[nodiscard]] double least() const { return linear_ratio(view(), labels, 1).ratio; }
};

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 2U : 20U};
  plan.configurations.push_back(
      {{"data", "normal"}, {"rows", 50}, {"width", 5}, {"maps", quick ? 500 : 10000}});
  plan.configurations.push_back({{"data", "xor"}});
  return plan;
}

/// Normal points: three fifths with mean 0, the others with another mean.
Samples two_clouds(std::size_t rows, std::size_t width, Random& random) {
  Samples samples{.width = width};
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t label = 5 * row < 3 * rows ? 0 : 1;
    samples.labels.push_back(label);
    for (std::size_t i = 0; i < width; ++i)
      samples.x.push_back(random.normal() + (label == 1 && i < 2 ? 1.0 : 0.0));
  }
  return samples;
}

/// x W of a matrix W (width × out).
Samples mapped(const Samples& samples, const std::vector<double>& map, std::size_t out) {
  Samples image{
      .width = out, .x = std::vector<double>(samples.labels.size() * out), .labels = samples.labels};
  for (std::size_t row = 0; row < samples.labels.size(); ++row) {
    for (std::size_t i = 0; i < samples.width; ++i) {
      for (std::size_t o = 0; o < out; ++o)
        image.x[row * out + o] += samples.x[row * samples.width + i] * map[i * out + o];
    }
  }
  return image;
}

/// The samples after the last layer of a net.
Samples behind(const nets::Net& net, const Samples& samples) {
  return {.width = net.layers.back().out,
          .x = nets::trace(net, samples.view(), 1).back(),
          .labels = samples.labels};
}

void clouds(Run& run) {
  Random random(run.seed());
  const auto width = run.get<std::size_t>("width");
  const Samples samples = two_clouds(run.get<std::size_t>("rows"), width, random);
  const nets::LinearRatio least = linear_ratio(samples.view(), samples.labels, 1);
  run.measure("lssr", 1, least.ratio);
  run.measure("ssr", 1, samples.ratio());
  run.measure("along", 1, mapped(samples, least.direction, 1).ratio());
  double best = 1.0;
  for (std::size_t trial = 0; trial < run.get<std::size_t>("maps"); ++trial) {
    const std::size_t out = 1 + random.below(width);
    std::vector<double> map(width * out);
    for (double& value : map) value = random.normal();
    best = std::min(best, mapped(samples, map, out).ratio());
  }
  run.measure("best_map", 1, best);
  const std::vector<std::int64_t> labels(samples.labels.begin(), samples.labels.end());
  // Without early stopping, so that each class becomes one point.
  const nets::Construction made =
      nets::construct(samples.view(), labels, {.seed = run.seed(), .early_stop = false, .threads = 1});
  run.measure("lssr_of_net", 1, behind(made.net, samples).least());
  run.measure("layers", 1, static_cast<double>(made.net.layers.size()));
}

void exclusive_or(Run& run) {
  const Samples samples{.width = 2, .x = {0, 0, 1, 1, 0, 1, 1, 0}, .labels = {0, 0, 1, 1}};
  run.measure("lssr", 1, samples.least());
  run.measure("ssr", 1, samples.ratio());
  nets::Net net{.layers = {nets::one_fold(std::vector{1.0, 1.0}, 1.0, 1.0)},
                .head = {.in = 3, .out = 2, .weight = std::vector<double>(6), .bias = {0.0, 0.0}}};
  const Samples image = behind(net, samples);
  run.measure("lssr_of_net", 1, image.least());
  run.measure("ssr_of_net", 1, image.ratio());
}

void perform(Run& run) { run.get<std::string>("data") == "xor" ? exclusive_or(run) : clouds(run); }

Finding linear_bound(const Results& results) {
  const Results runs = results.where("data", "normal");
  if (runs.runs().empty()) return {"not run"};
  double below = -1.0;
  double along = 0.0;
  for (const Done& run : runs.runs()) {
    below = std::max(below, run.last("lssr") - run.last("best_map"));
    along = std::max(along, std::abs(run.last("along") - run.last("lssr")));
  }
  return {
      fmt::format(
          "LSSR {:.4f} in the mean, best of random maps {:.4f}, none lower than LSSR by more than {:.1e}; "
          "along its direction SSR is LSSR to {:.1e}",
          runs.last("lssr").mean, runs.last("best_map").mean, std::max(0.0, below), along),
      one_case(below <= 1e-12 && along <= 1e-12)};
}

Finding norm_breaks_xor(const Results& results) {
  const Results runs = results.where("data", "xor");
  if (runs.runs().empty()) return {"not run"};
  const Done& run = runs.runs().front();
  return {fmt::format("LSSR {:.3g} -> {:.1e}, SSR {:.3g} -> {:.4f}", run.last("lssr"),
                      run.last("lssr_of_net"), run.last("ssr"), run.last("ssr_of_net")),
          one_case(std::abs(run.last("lssr") - 1.0) < 1e-12 && run.last("lssr_of_net") < 1e-12)};
}

Finding norm_breaks_any(const Results& results) {
  const Results runs = results.where("data", "normal");
  if (runs.runs().empty()) return {"not run"};
  return {
      fmt::format(
          "SSR of the read-out at most {:.1e} behind at most {:.0f} layers, LSSR before at least {:.4f}; "
          "{} seeds",
          runs.last("lssr_of_net").most, runs.last("layers").most, runs.last("lssr").least, runs.seeds()),
      runs.numbers([](const Done& run) { return run.last("lssr_of_net") < run.last("lssr") ? 1.0 : 0.0; })};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "ni-separability",
    .paper = "Ni 2024",
    .claim = "No linear map has a sum-of-squares ratio of two classes below LSSR; linear maps with LN do.",
    .quick_seconds = 1,
    .full_minutes = 0.2,
    .scale = {.paper = "theorems, of any size", .ours = "20 drawn sets of 50 rows, and XOR"},
    .plan = plan,
    .perform = perform,
    .claims =
        {{.name = "linear_bound",
          .says = "LSSR is a lower bound of the ratio of every linear image, and one direction attains it.",
          .paper = "the definition of LSSR",
          .rule =
              {"of random linear maps none below LSSR, and the direction's ratio is LSSR, both to 1e-12, in "
               "every run"},
          .judge = linear_bound},
         {.name = "norm_breaks_xor",
          .says = "One LN of three neurons makes XOR separable.",
          .paper = "the XOR example: linear maps and one LN",
          .rule = {"LSSR from 1 to 0, both to 1e-12"},
          .judge = norm_breaks_xor},
         {.name = "norm_breaks_any",
          .says = "LN with linear maps breaks LSSR.",
          .paper = "the proposition (the talk's slides)",
          .rule = {"the least SSR of a linear read-out behind the LN-Net constructed for the classes is "
                   "below the "
                   "LSSR before it, in every run"},
          .judge = norm_breaks_any}},
    .figures = nullptr};

}  // namespace normscope::lab::ni_separability
