#include <algorithm>
#include <cmath>

#include "finding_rules.hpp"
#include "text.hpp"

namespace normscope::audit {

double log_severity(double value, double low, double high) {
  return std::clamp(std::log(value / low) / std::log(high / low), 0.0, 1.0);
}

std::string names(const Report& report, const std::vector<std::size_t>& which) {
  const std::size_t named = std::min(which.size(), named_per_rule);
  const std::size_t others = which.size() - named;
  std::string text;
  for (std::size_t k = 0; k < named; ++k) {
    const bool last = k + 1 == named && others == 0;
    text += (k == 0 ? "" : last ? " and " : ", ") + report.norms[which[k]].norm.name;
  }
  return others == 0 ? text : text + " and " + counted(others, "other");
}

std::vector<Finding> find(const Report& report) {
  if (report.norms.empty()) {
    return {{"no_norms", {}, "No tensor here looks like the gain of a normalization layer.", {}, 0.5}};
  }
  Findings findings;
  add_image_findings(report, findings);
  add_parameter_findings(report, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

}  // namespace normscope::audit
