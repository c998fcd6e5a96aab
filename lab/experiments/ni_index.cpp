#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/scatter.hpp>
#include <normscope/nets/train.hpp>
#include <normscope/results/figures/vega.hpp>

#include "frame/experiment.hpp"

// LSSR beside SSR as an index of separability; confusion of three classes, and the layers that break it.
namespace normscope::lab::ni_index {
namespace {

constexpr std::size_t rows = 60;
constexpr std::size_t width = 5;
constexpr std::size_t least_seeds = 10;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  return {{Json{{"check", "index"}, {"sets", quick ? 10 : 100}, {"steps", quick ? 100 : 500}},
           Json{{"check", "confusion"}, {"sets", quick ? 10 : 100}, {"steps", 0}}},
          quick ? 1U : least_seeds};
}

/// Two normal clouds whose distance and whose features' scales are drawn, in coordinates mixed at random.
nets::Dataset clouds(Random& random) {
  nets::Dataset data{.width = width, .classes = 2};
  std::vector<double> scale(width);
  for (double& value : scale) value = std::exp(1.5 * random.normal());
  std::vector<double> mix(width * width);
  for (double& value : mix) value = random.normal();
  const double apart = 3.0 * random.uniform();
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint32_t label = row % 2 == 0 ? 0 : 1;
    std::vector<double> x(width);
    for (std::size_t i = 0; i < width; ++i)
      x[i] = scale[i] * (random.normal() + (i == 0 && label == 1 ? apart : 0.0));
    for (std::size_t o = 0; o < width; ++o) {
      double sum = 0.0;
      for (std::size_t i = 0; i < width; ++i) sum += mix[o * width + i] * x[i];
      data.x.push_back(sum);
    }
    data.labels.push_back(label);
  }
  return data;
}

/// Ranks from 0; equal values share the mean of theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> found;
  for (const double value : values) {
    double less = 0.0;
    double same = 0.0;
    for (const double other : values) {
      less += other < value ? 1.0 : 0.0;
      same += other == value ? 1.0 : 0.0;
    }
    found.push_back(less + 0.5 * (same - 1.0));
  }
  return found;
}

void index(Run& run) {
  Random random(run.seed());
  std::vector<double> ssr;
  std::vector<double> lssr;
  std::vector<double> error;
  double changed = 0.0;
  double changed_ssr = 0.0;
  for (std::size_t set = 0; set < run.get<std::size_t>("sets"); ++set) {
    const nets::Dataset data = clouds(random);
    const std::vector<std::size_t> labels(data.labels.begin(), data.labels.end());
    ssr.push_back(nets::sum_of_squares_ratio(data.view(), labels, 1));
    lssr.push_back(nets::linear_ratio(data.view(), labels, 1).ratio);
    // Features of one size, so that one rate trains them all; a linear map, which LSSR does not see.
    nets::Dataset whitened = data;
    for (std::size_t i = 0; i < width; ++i) {
      double squares = 0.0;
      for (std::size_t row = 0; row < rows; ++row) squares += std::pow(data.x[row * width + i], 2);
      for (std::size_t row = 0; row < rows; ++row)
        whitened.x[row * width + i] /= std::sqrt(squares / static_cast<double>(rows));
    }
    changed = std::max(changed, std::abs(nets::linear_ratio(whitened.view(), labels, 1).ratio - lssr.back()));
    changed_ssr =
        std::max(changed_ssr, std::abs(nets::sum_of_squares_ratio(whitened.view(), labels, 1) - ssr.back()));
    nets::Trainer trainer(
        {.depth = 0, .rate = 0.1, .steps = run.get<std::size_t>("steps"), .seed = run.seed()}, whitened, 1);
    while (!trainer.done()) trainer.step();
    error.push_back(1.0 - trainer.score().accuracy);
  }
  const std::vector<double> by_error = ranks(error);
  run.measure("of_ssr", 1, correlation(ranks(ssr), by_error));
  run.measure("of_lssr", 1, correlation(ranks(lssr), by_error));
  run.measure("changed", 1, changed);
  run.measure("changed_ssr", 1, changed_ssr);
}

/// The corners of a square, opposite ones of class 0, the others of two more classes: every projection onto a
/// line has both pairs symmetric about the same point.
void confusion(Run& run) {
  Random random(run.seed());
  std::size_t confused = 0;
  std::size_t solved = 0;
  std::size_t breaking = 0;
  std::size_t merging = 0;
  for (std::size_t set = 0; set < run.get<std::size_t>("sets"); ++set) {
    // An affine image of the square, so that a parallelogram.
    std::vector<double> x;
    const double map[6] = {random.normal(), random.normal(), random.normal(),
                           random.normal(), random.normal(), random.normal()};
    for (const auto& [p, q] : {std::pair{0.0, 0.0}, {1.0, 1.0}, {0.0, 1.0}, {1.0, 0.0}}) {
      x.push_back(map[0] * p + map[1] * q + map[2]);
      x.push_back(map[3] * p + map[4] * q + map[5]);
    }
    const std::vector<std::int64_t> labels{0, 0, 1, 2};
    const MatrixView<const double> view{x.data(), 4, 2};
    const nets::Construction printed = nets::construct(
        view, labels,
        {.mode = nets::Mode::paper, .seed = run.seed() + set, .early_stop = false, .threads = 1});
    confused += printed.correct < printed.total ? 1 : 0;
    const nets::Construction made =
        nets::construct(view, labels, {.seed = run.seed() + set, .early_stop = false, .threads = 1});
    solved += made.correct == made.total ? 1 : 0;
    for (const nets::Fold& fold : made.folds) ++(fold.first == nets::no_row ? breaking : merging);
  }
  run.measure("confused", 1, static_cast<double>(confused));
  run.measure("solved", 1, static_cast<double>(solved));
  run.measure("breaking", 1, static_cast<double>(breaking));
  run.measure("merging", 1, static_cast<double>(merging));
}

void perform(Run& run) {
  run.get<std::string>("check") == "index" ? index(run) : confusion(run);
  run.reached(1, 1, [] { return Bytes{}; });
}

Finding better_index(const Results& results) {
  const Results runs = results.where("check", "index");
  if (runs.runs().empty()) return {"not run"};
  return {fmt::format(
              "rank correlation with the error of a trained linear classifier {:.3f} of LSSR, {:.3f} of SSR",
              runs.last("of_lssr").mean, runs.last("of_ssr").mean),
          runs.numbers([](const Done& run) { return run.last("of_lssr") - run.last("of_ssr"); })};
}

Finding invariant(const Results& results) {
  const Results runs = results.where("check", "index");
  if (runs.runs().empty()) return {"not run"};
  return {fmt::format("scaling each feature changes LSSR by at most {:.1e} and SSR by up to {:.2f}",
                      runs.last("changed").most, runs.last("changed_ssr").most),
          runs.numbers([](const Done& run) { return run.last("changed") <= 1e-9 ? 1.0 : 0.0; })};
}

Finding confusion_happens(const Results& results) {
  const Results runs = results.where("check", "confusion");
  if (runs.runs().empty()) return {"not run"};
  return {fmt::format("a row is wrong in at least {:.0f} of {} parallelograms, {} seeds",
                      runs.last("confused").least,
                      runs.runs().front().configuration.at("sets").get<std::size_t>(), runs.seeds()),
          runs.numbers([](const Done& run) { return run.last("confused") > 0.0 ? 1.0 : 0.0; })};
}

Finding breaking_helps(const Results& results) {
  const Results runs = results.where("check", "confusion");
  if (runs.runs().empty()) return {"not run"};
  const auto sets = runs.runs().front().configuration.at("sets").get<double>();
  return {fmt::format("at least {:.0f} of {:.0f} solved, with {:.2f} breaking and {:.2f} merging layers each",
                      runs.last("solved").least, sets, runs.last("breaking").mean / sets,
                      runs.last("merging").mean / sets),
          runs.numbers([&](const Done& run) {
            return run.last("solved") == sets && run.last("breaking") >= sets ? 1.0 : 0.0;
          })};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "ni-index",
    .paper = "Ni 2024",
    .claim =
        "LSSR tells better than SSR how well a linear classifier can do; folds confuse three classes, and a "
        "layer "
        "that merges nothing breaks the tie.",
    .quick_seconds = 1,
    .full_minutes = 0.5,
    .scale = {.paper = "statements on the talk's slides",
              .ours =
                  "100 pairs of normal clouds of 60 rows in R⁵ and 100 parallelograms in each of ten seeds"},
    .plan = plan,
    .perform = perform,
    .claims = {
        {.name = "better_index",
         .says = "LSSR is a better index of separability than SSR.",
         .paper = "the talk's slides, without a measure",
         .rule = {"over 100 drawn pairs of clouds, the rank correlation of LSSR with the training error of a "
                  "linear classifier minus that of SSR",
                  Test::mean, least_seeds, 0.2},
         .judge = better_index},
        as_ours({.name = "invariant",
                 .says = "The reason: LSSR does not change under invertible linear maps, and SSR does.",
                 .paper = "follows from the definition",
                 .rule = {"scaling every feature to the same size changes LSSR by at most 1e-9, in every run",
                          Test::every_case, least_seeds},
                 .judge = invariant}),
        {.name = "confusion",
         .says = "With three classes a fold may confuse two of them, whatever the projection.",
         .paper = "\"Confusion is possible\" (the talk's slides)",
         .rule = {"algorithm 1 as printed gives a row the wrong label in one or more of 100 drawn "
                  "parallelograms, "
                  "opposite corners one class and the others two, whose ties rounding leaves; in every seed",
                  Test::every_case, least_seeds},
         .judge = confusion_happens},
        {.name = "breaking",
         .says = "Breaking parallelization solves it: a layer without a merge comes first.",
         .paper = "the talk's slides",
         .rule =
             {"the construction with breaking layers gives every row of them its label, with one breaking "
              "layer or more each",
              Test::every_case, least_seeds},
         .judge = breaking_helps}}};

}  // namespace normscope::lab::ni_index
