#include <fmt/core.h>

#include <normscope/nets/tasks.hpp>
#include <normscope/results/figures.hpp>

#include "ln_nets/training.hpp"

namespace normscope::lab::ni_random_labels {
namespace {

using nets::Activation;

constexpr std::size_t least_seeds = 3;
constexpr std::size_t width = 64;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1 : least_seeds};
  const auto add = [&](const char* arm, std::size_t depth, std::size_t groups, double rate = 0.01) {
    Json configuration{{"arm", arm}, {"rows", 1000}};
    configuration.update(
        ln_nets::to_json({.width = width,
                          .depth = depth,
                          .activation = std::string_view(arm) == "ReLU" ? Activation::relu : Activation::norm,
                          .norm = NormKind::layer,
                          .groups = groups,
                          .rate = rate,
                          .schedule = nets::Schedule::cosine,
                          .steps = quick ? 60U : 500U}));
    plan.configurations.push_back(std::move(configuration));
  };
  add("linear", 0, 1);
  if (quick) {
    add("LN", 1, 1);
    add("LN-G", 1, 8);
    return plan;
  }
  add("LN", 1, 1);
  for (const std::size_t groups : {2, 4, 8, 16, 32}) add("LN-G", 1, groups);
  // The rate at which deeper nets learn most: docs/papers/winsor.md.
  for (const std::size_t depth : {2, 4, 8}) add("LN", depth, 1, 3e-3);
  add("LN-G", 2, 4, 3e-3);
  add("ReLU", 2, 1, 3e-3);
  return plan;
}

void perform(Run& run) {
  const auto data =
      std::make_shared<const nets::Dataset>(nets::random_labels(run.get<std::size_t>("rows"), run.seed()));
  ln_nets::train(run, data);
}

double learned(const Done& run) { return run.last("train_accuracy"); }

/// LN and LN-G of one layer.
Results in_groups(const Results& results, std::size_t groups) {
  return results.where("activation", "norm").where("depth", 1).where("groups", groups);
}

Finding more(const Results& less, const Results& more, const char* name, const char* more_name) {
  if (less.runs().empty() || more.runs().empty()) return {"not run"};
  const Results::Paired gain = Results::paired(less, more, learned);
  std::string ours = fmt::format(
      "{} {:.1f} %, {} {:.1f} %; more by {:.1f} ± {:.1f} points, in {} of {} seeds", name,
      100.0 * less.spread(learned).mean, more_name, 100.0 * more.spread(learned).mean,
      100.0 * gain.difference.mean, 100.0 * gain.difference.deviation, gain.larger, gain.difference.count);
  return {std::move(ours), gain.differences};
}

Finding above_linear(const Results& results) {
  return more(results.where("arm", "linear"), in_groups(results, 1), "linear", "LN");
}

Finding groups_above_one(const Results& results) {
  return more(in_groups(results, 1), in_groups(results, 4), "LN", "4 groups");
}

Finding deeper_is_more(const Results& results) {
  return more(in_groups(results, 1), results.where("arm", "LN").where("depth", 4), "1 layer", "4 layers");
}

Finding order_of_the_bound(const Results& results) {
  std::string ours;
  for (const std::size_t groups : {1, 2, 4, 8, 32}) {
    const Results runs = in_groups(results, groups);
    if (runs.runs().empty()) return {"not run"};
    ours += fmt::format("{}{:.1f} % with {}", ours.empty() ? "" : ", ", 100.0 * runs.spread(learned).mean,
                        groups);
  }
  const auto gain = [&](std::size_t less, std::size_t more) {
    return Results::paired(in_groups(results, less), in_groups(results, more), learned).differences;
  };
  return weakest(std::move(ours), {gain(1, 2), gain(2, 4), gain(4, 8), gain(32, 2)});
}

std::vector<Figure> figures(const Results& results) {
  std::vector<figures::GroupResult> means;
  const Results linear = results.where("arm", "linear");
  if (!linear.runs().empty()) means.push_back({0, linear.spread(learned).mean});
  const Results norms = results.where("activation", "norm").where("depth", 1);
  for (const Json& groups : norms.all("groups"))
    means.push_back({groups.get<std::size_t>(), norms.where("groups", groups).spread(learned).mean});
  if (means.size() < 2) return {};
  return {
      {"groups",
       "Random labels learned by one layer of 64 features over the number of groups, mean over seeds, beside "
       "the bound of the Hessian measure.",
       figures::accuracy_over_groups(means, NormKind::layer, width)}};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "ni-random-labels",
    .paper = "Ni 2024",
    .claim =
        "LN-Nets learn more random labels than linear nets, and groups increase the number: here 1000 points "
        "of R^32 in ten classes.",
    .quick_seconds = 2,
    .full_minutes = 6,
    .scale = {.paper = "CIFAR-10 and MNIST, 50,000 and 60,000 images, 150 epochs",
              .ours = "1000 points of R^32, 500 steps of all",
              .factor = 50},
    .plan = plan,
    .perform = perform,
    .claims = {{.name = "above_linear",
                .says = "A net with one LN learns more random labels than a linear one.",
                .paper =
                    "the abstract, on CIFAR-10 and MNIST with random labels; its numbers could not be read",
                .rule = {"share of labels learned with one LN minus that of the linear net", Test::mean,
                         least_seeds, 0.03},
                .judge = above_linear},
               {.name = "groups_above_one",
                .says = "LN-G learns more than LN.",
                .paper = "the abstract",
                .rule = {"share learned with four groups minus that with one", Test::mean, least_seeds, 0.2},
                .judge = groups_above_one},
               as_ours({.name = "order_of_the_bound",
                        .says = "Over the number of groups, the share learned has the order of our bound of "
                                "H, 0 with 32 groups of two "
                                "and 1, 1.94, 3.61, 6.19 with 1, 2, 4 and 8 (ours; groups of two are a "
                                "counterexample if they learn more "
                                "than two groups).",
                        .paper = "proposes H as a measure of nonlinearity, not of capacity; groups of two "
                                 "are outside its proposition",
                        .rule = {"gain in the share learned from 1 to 2, 2 to 4, 4 to 8 and 32 to 2 groups, "
                                 "the least of these",
                                 Test::mean, least_seeds, 0.0},
                        .judge = order_of_the_bound}),
               {.name = "deeper_is_more",
                .says = "Deeper LN-Nets learn more.",
                .paper = "the abstract: capacity grows with depth",
                .rule = {"share learned by four layers minus that of one", Test::mean, least_seeds, 0.1},
                .judge = deeper_is_more}},
    .figures = figures};

}  // namespace normscope::lab::ni_random_labels
