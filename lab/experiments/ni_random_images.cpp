#include <array>
#include <optional>

#include <fmt/core.h>

#include <normscope/nets/tasks.hpp>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "ln_nets/training.hpp"

namespace normscope::lab::ni_random_images {
namespace {

using nets::Activation;

constexpr std::size_t least_seeds = 3;
constexpr std::size_t batch = 100;

/// The training images that a folder of the data set has to hold, and the passes over them.
struct Images {
  const char* name;
  std::size_t rows;
  std::size_t passes;
};
/// Every arm is trained with each, as the paper searches the rate of its linear nets.
constexpr std::array rates{5e-4, 2e-3, 8e-3};
constexpr std::array all_images{Images{"mnist", 60000, 30}, Images{"cifar10", 10000, 150}};

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1 : least_seeds};
  const auto add = [&](const Images& images, const char* arm, std::size_t depth, std::size_t groups) {
    Json configuration{{"images", images.name}, {"arm", arm}, {"rows", quick ? 1000 : images.rows}};
    for (const double rate : rates) {
      configuration.update(ln_nets::to_json({.width = 64,
                                             .depth = depth,
                                             .activation = Activation::norm,
                                             .norm = NormKind::layer,
                                             .groups = groups,
                                             .rate = rate,
                                             .schedule = nets::Schedule::cosine,
                                             .steps = quick ? 50 : images.passes * images.rows / batch,
                                             .batch = batch,
                                             .record_every = quick ? 10 : images.rows / batch,
                                             .precision = Dtype::F32}));
      plan.configurations.push_back(configuration);
      if (quick) break;
    }
  };
  for (const Images& images : all_images) {
    add(images, "linear", 0, 1);
    add(images, "LN", 1, 1);
    add(images, "LN, 4 layers", 4, 1);
    add(images, "LN in 4 groups", 1, 4);
  }
  return plan;
}

void perform(Run& run) {
  const auto images = run.get<std::string>("images");
  const auto task = nets::image_task(fmt::format("random-labels:{}:{}", images, data_file(images).string()));
  ln_nets::train(run,
                 std::make_shared<const nets::Dataset>(task->make(run.get<std::size_t>("rows"), run.seed())));
}

double learned(const Done& run) { return run.last("train_accuracy"); }

/// The runs of the rate at which the nets learn most.
Results at_best_rate(const Results& results) {
  std::optional<Results> best;
  for (const Json& rate : results.all("rate")) {
    Results there = results.where("rate", rate);
    if (!best || there.spread(learned).mean > best->spread(learned).mean) best = std::move(there);
  }
  return best.value_or(results);
}

/// The share that `arm` learns minus that of `base`, of the data set with the smaller difference.
Finding more(const Results& results, const char* base, const char* arm) {
  std::string ours;
  std::vector<std::vector<double>> gains;
  for (const Json& images : results.all("images")) {
    const Results there = results.where("images", images);
    const Results less = at_best_rate(there.where("arm", base));
    const Results more = at_best_rate(there.where("arm", arm));
    if (less.runs().empty() || more.runs().empty()) return {"not run"};
    const Results::Paired gain = Results::paired(less, more, learned);
    ours += fmt::format("{}{}: {} {:.2f} %, {} {:.2f} %; more by {:.2f} ± {:.2f} points, in {} of {} seeds",
                        ours.empty() ? "" : "; ", shown(images), base, 100.0 * less.spread(learned).mean, arm,
                        100.0 * more.spread(learned).mean, 100.0 * gain.difference.mean,
                        100.0 * gain.difference.deviation, gain.larger, gain.difference.count);
    gains.push_back(gain.differences);
  }
  if (gains.empty()) return {"not run"};
  return weakest(std::move(ours), gains);
}

Finding above_linear(const Results& results) { return more(results, "linear", "LN"); }
Finding groups_help(const Results& results) { return more(results, "LN", "LN in 4 groups"); }
Finding depth_helps(const Results& results) { return more(results, "LN", "LN, 4 layers"); }

std::vector<Figure> figures(const Results& results) {
  std::vector<Figure> all;
  for (const Json& images : results.all("images")) {
    const std::string name = shown(images);
    std::vector<Done> best;
    const Results there = results.where("images", images);
    for (const Json& arm : there.all("arm")) {
      const Results chosen = at_best_rate(there.where("arm", arm));
      best.insert(best.end(), chosen.runs().begin(), chosen.runs().end());
    }
    all.push_back(over_steps(
        name,
        fmt::format("Random labels of {}: accuracy on training batches, each net at the rate "
                    "at which it learns most.",
                    name),
        Results(std::move(best)), {.series = "arm", .metric = "accuracy", .title = "share of labels"}));
  }
  return all;
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "ni-random-images",
    .paper = "Ni 2024",
    .claim = "LN-Nets learn more random labels of images than linear nets: MNIST and CIFAR-10.",
    .quick_seconds = 5,
    .full_minutes = 40,
    .scale = {.paper = "CIFAR-10 and MNIST, 50,000 and 60,000 images, 150 passes",
              .ours = "60,000 of MNIST, 30 passes; 10,000 of CIFAR-10, 150; width 64, best of three rates",
              .factor = 5},
    .plan = plan,
    .perform = perform,
    .claims =
        {{.name = "above_linear",
          .says = "A net with one LN learns more random labels of images than a linear one.",
          .paper = "the abstract; its numbers could not be read",
          .rule = {"share of labels learned with one LN minus that of the linear net, each at the best "
                   "of three rates, of the data set with the "
                   "smaller difference",
                   Test::mean, least_seeds, 0.01},
          .judge = above_linear,
          .doubt =
              "a net with one LN can approximate any linear one, so training decides and not capacity, and "
              "the linear net is best at the largest rate that was tried"},
         {.name = "groups_help",
          .says = "LN-G in four groups learns more of them than LN.",
          .paper = "the abstract",
          .rule = {"share learned with four groups minus that with one, each at the best of three "
                   "rates, of the data set with the smaller "
                   "difference",
                   Test::mean, least_seeds, 0.01},
          .judge = groups_help},
         {.name = "depth_helps",
          .says = "Four LNs learn more of them than one.",
          .paper = "the abstract: capacity grows with depth",
          .rule = {"share learned with four layers minus that with one, each at the best of three "
                   "rates, of the data set with the smaller "
                   "difference",
                   Test::mean, least_seeds, 0.01},
          .judge = depth_helps,
          .doubt = "the deeper net is best at the smallest rate that was tried"}},
    .figures = figures};

}  // namespace normscope::lab::ni_random_images
