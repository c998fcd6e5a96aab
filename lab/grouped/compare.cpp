#include "compare.hpp"

#include <utility>
#include <vector>

#include <fmt/core.h>

namespace normscope::lab::grouped {

Plan transformers_over_groups(Size size, const Extent& full, const Json& rest, const Schedule& schedule) {
  const Extent extent = size == Size::quick ? Extent{.width = 64, .layers = 2, .seeds = 1} : full;
  Plan plan{.configurations = {}, .seeds = extent.seeds};
  for (const std::size_t groups : {std::size_t{1}, extent.width / features_of_group}) {
    Json configuration{{"groups", groups}, {"width", extent.width}, {"layers", extent.layers}, {"heads", 4}};
    configuration.update(rest);
    configuration.update(to_json(schedule));
    plan.configurations.push_back(std::move(configuration));
  }
  return plan;
}

Results in_groups_of_eight(const Results& results) {
  std::vector<Done> runs;
  for (const Done& run : results.runs()) {
    const auto width = run.configuration.at("width").get<std::size_t>();
    if (run.is("groups", width / features_of_group)) runs.push_back(run);
  }
  return Results(std::move(runs));
}

Finding compare(const char* name, const Results& one, const char* better_name, const Results& better,
                const Gain& gain) {
  if (one.runs().empty() || better.runs().empty()) return {"not run"};
  const double sign = gain.lower_is_better ? -1.0 : 1.0;
  const Results::Paired paired =
      Results::paired(one, better, [&](const Done& run) { return sign * run.last(gain.metric); });
  if (paired.differences.empty()) return {"no seed has both"};
  const Spread first = one.last(gain.metric);
  const Spread second = better.last(gain.metric);
  return {
      fmt::format(
          "{} {:.4f} ± {:.4f} with {}, {:.4f} ± {:.4f} with {}; better by {:.4f} ± {:.4f}, in {} of {} seeds",
          gain.metric, first.mean, first.deviation, name, second.mean, second.deviation, better_name,
          paired.difference.mean, paired.difference.deviation, paired.larger, paired.difference.count),
      paired.differences};
}

Finding compare_losses(const Results& results, const char* key, const Arm& one, const Arm& better) {
  return compare(one.name, results.where(key, one.value), better.name, results.where(key, better.value),
                 {.metric = "loss", .lower_is_better = true});
}

Finding dyt_for_layer_norm(const Results& results) {
  return compare_losses(results, "norm", {"LN", "layer"}, {"DyT", "dyt"});
}

Finding derf_for_layer_norm(const Results& results) {
  return compare_losses(results, "norm", {"LN", "layer"}, {"Derf", "derf"});
}

Finding compare_groups_of_eight(const Results& results, const Gain& gain) {
  return compare("LN", results.where("groups", 1), "groups of eight", in_groups_of_eight(results), gain);
}

}  // namespace normscope::lab::grouped
