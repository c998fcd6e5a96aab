#include "compare.hpp"

#include <fmt/core.h>

namespace normscope::lab::grouped {

Finding compare(const char* name, const Results& one, const char* better_name, const Results& better,
                const Gain& rule) {
  if (one.runs().empty() || better.runs().empty()) return {"not run", std::nullopt};
  const double sign = rule.lower_is_better ? -1.0 : 1.0;
  const Results::Paired gain =
      Results::paired(one, better, [&](const Done& run) { return sign * run.last(rule.metric); });
  if (gain.difference.count == 0) return {"no seed has both", std::nullopt};
  const Spread first = one.last(rule.metric);
  const Spread second = better.last(rule.metric);
  std::string ours = fmt::format(
      "{} {:.4f} ± {:.4f} with {}, {:.4f} ± {:.4f} with {}; better by {:.4f} ± {:.4f}, in {} of {} seeds",
      rule.metric, first.mean, first.deviation, name, second.mean, second.deviation, better_name,
      gain.difference.mean, gain.difference.deviation, gain.larger, gain.difference.count);
  if (gain.difference.count < rule.seeds) return {std::move(ours), std::nullopt};
  return {std::move(ours), gain.larger == gain.difference.count && gain.difference.mean >= rule.least};
}

}  // namespace normscope::lab::grouped
