#include <fmt/core.h>

#include <normscope/figures/training.hpp>
#include <normscope/lnnet/tasks.hpp>

#include "nets/training.hpp"

namespace normscope::lab {
namespace {

using lnnet::Activation;

constexpr std::size_t least_seeds = 3;
constexpr std::size_t width = 64;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1 : least_seeds};
  const auto add = [&](const char* arm, std::size_t depth, std::size_t groups, double rate = 0.01) {
    Json configuration{{"arm", arm}, {"rows", 1000}};
    configuration.update(
        nets::to_json({.width = width,
                       .depth = depth,
                       .activation = std::string_view(arm) == "ReLU" ? Activation::relu : Activation::norm,
                       .norm = NormKind::layer,
                       .groups = groups,
                       .rate = rate,
                       .schedule = lnnet::Schedule::cosine,
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
      std::make_shared<const lnnet::Dataset>(lnnet::random_labels(run.get<std::size_t>("rows"), run.seed()));
  nets::train(run, data);
}

double learned(const Done& run) { return run.last("train_accuracy"); }

/// LN and LN-G of one layer.
Results in_groups(const Results& results, std::size_t groups) {
  return results.where("activation", "norm").where("depth", 1).where("groups", groups);
}

Finding more(const Results& less, const Results& more, const char* name, const char* more_name,
             double least) {
  if (less.runs().empty() || more.runs().empty()) return {"not run", std::nullopt};
  const Results::Paired gain = Results::paired(less, more, learned);
  std::string ours = fmt::format(
      "{} {:.1f} %, {} {:.1f} %; more by {:.1f} ± {:.1f} points, in {} of {} seeds", name,
      100.0 * less.spread(learned).mean, more_name, 100.0 * more.spread(learned).mean,
      100.0 * gain.difference.mean, 100.0 * gain.difference.deviation, gain.larger, gain.difference.count);
  if (gain.difference.count < least_seeds || !less.full(least_seeds)) return {std::move(ours), std::nullopt};
  return {std::move(ours), gain.larger == gain.difference.count && gain.difference.mean >= least};
}

Finding above_linear(const Results& results) {
  return more(results.where("arm", "linear"), in_groups(results, 1), "linear", "LN", 0.03);
}

Finding groups_above_one(const Results& results) {
  return more(in_groups(results, 1), in_groups(results, 4), "LN", "4 groups", 0.2);
}

Finding deeper_is_more(const Results& results) {
  return more(in_groups(results, 1), results.where("arm", "LN").where("depth", 4), "1 layer", "4 layers",
              0.1);
}

Finding order_of_the_bound(const Results& results) {
  std::string ours;
  std::vector<double> means;
  std::size_t seeds = SIZE_MAX;
  for (const std::size_t groups : {1, 2, 4, 8, 32}) {
    const Results runs = in_groups(results, groups);
    if (runs.runs().empty()) return {"not run", std::nullopt};
    seeds = std::min(seeds, runs.runs().size());
    means.push_back(runs.spread(learned).mean);
    ours += fmt::format("{}{:.1f} % with {}", ours.empty() ? "" : ", ", 100.0 * means.back(), groups);
  }
  if (seeds < least_seeds || !results.full(least_seeds)) return {std::move(ours), std::nullopt};
  bool rises = true;
  for (std::size_t i = 1; i < 4; ++i) rises = rises && means[i] - means[i - 1] >= 0.02;
  return {std::move(ours), rises && means[4] < means[3]};
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

namespace experiments {

extern const Experiment ni_random_labels;
const Experiment ni_random_labels{
    .name = "ni-random-labels",
    .paper = "Ni 2024",
    .claim =
        "LN-Nets learn more random labels than linear nets, and groups increase the number: here 1000 points "
        "of R^32 in ten classes.",
    .quick_seconds = 2,
    .full_minutes = 6,
    .plan = plan,
    .perform = perform,
    .claims =
        {{.name = "above_linear",
          .says = "A net with one LN learns more random labels than a linear one.",
          .paper = "the abstract, on CIFAR-10 and MNIST with random labels; its numbers could not be read",
          .rule = "more in every one of at least 3 seeds, by 3 points or more in the mean",
          .judge = above_linear},
         {.name = "groups_above_one",
          .says = "LN-G learns more than LN.",
          .paper = "the abstract",
          .rule = "four groups above one in every one of at least 3 seeds, by 20 points or more in the mean",
          .judge = groups_above_one},
         {.name = "order_of_the_bound",
          .says = "Over the number of groups the order is that of the Hessian measure's bound.",
          .paper = "the bound is the paper's; that the order follows it is an assumption of the paper",
          .rule =
              "means of at least 3 seeds rise by 2 points or more from 1 to 2, 4 and 8 groups, and groups "
              "of two features (32) are below 8 groups",
          .judge = order_of_the_bound},
         {.name = "deeper_is_more",
          .says = "Deeper LN-Nets learn more.",
          .paper = "the abstract: capacity grows with depth",
          .rule = "four layers above one in every one of at least 3 seeds, by 10 points or more in the mean",
          .judge = deeper_is_more}},
    .figures = figures};

}  // namespace experiments
}  // namespace normscope::lab
