#include <normscope/audit/usual.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <normscope/audit/report.hpp>
#include <normscope/audit/text.hpp>

#include "usual_table.hpp"

namespace normscope::audit {

const UsualRange* UsualFamily::range(std::string_view measure) const {
  const auto at = std::find_if(ranges.begin(), ranges.end(),
                               [&](const UsualRange& range) { return range.measure == measure; });
  return at == ranges.end() ? nullptr : &*at;
}

std::string UsualFamily::text(std::string_view measure) const {
  const UsualRange* const known = range(measure);
  // The range of a single model says nothing about others, and may be that of the model itself.
  if (known == nullptr || models.size() < 2) return "";
  return fmt::format("usual: {} to {} in 90 % of the norms of {} {} models", number_at_least(known->low),
                     number_at_most(known->high), models.size(), title);
}

std::optional<double> measured(const NormReport& norm, std::string_view measure) {
  if (measure == "shift_over_radius") return norm.shift_over_radius;
  if (measure == "cosine_to_ones") return norm.null_space ? norm.null_space->cosine_to_ones : std::nullopt;
  if (measure == "similarity") return norm.next ? std::optional(norm.next->similarity) : std::nullopt;
  if (!norm.image || norm.image->semi_axes == 0) return {};
  if (measure == "condition") return norm.image->condition;
  if (measure == "longest_over_median") return norm.image->top_axes[0].ratio_to_median;
  if (measure == "effective_share") {
    return norm.image->effective_dimension / static_cast<double>(norm.image->semi_axes);
  }
  if (measure == "switched_off_share") {
    return static_cast<double>(norm.switched_off.size()) / static_cast<double>(norm.norm.width);
  }
  return {};
}

const UsualFamily* usual_family(std::string_view architecture) {
  for (const UsualFamily& family : usual_families) {
    const auto& names = family.architectures;
    if (std::find(names.begin(), names.end(), architecture) != names.end()) return &family;
  }
  return nullptr;
}

}  // namespace normscope::audit
