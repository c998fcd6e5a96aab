#include "compare.hpp"

#include <utility>
#include <vector>

#include <fmt/core.h>

namespace normscope::lab::grouped {

Plan transformers_over_groups(Size size, const Json& rest, const Schedule& schedule) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1U : least_seeds};
  const std::vector<std::size_t> groups =
      quick ? std::vector<std::size_t>{1, 8} : std::vector<std::size_t>{1, 4, 8, 16};
  for (const std::size_t count : groups) {
    Json configuration{{"groups", count}, {"width", 64}, {"layers", 2}, {"heads", 4}};
    configuration.update(rest);
    configuration.update(to_json(schedule));
    plan.configurations.push_back(std::move(configuration));
  }
  return plan;
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

}  // namespace normscope::lab::grouped
