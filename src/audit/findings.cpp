#include <algorithm>
#include <cmath>

#include <normscope/audit/text.hpp>
#include "finding_rules.hpp"

namespace normscope::audit {

double log_severity(double value, double low, double high) {
  if (!std::isfinite(value)) return 1.0;
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
  Findings findings;
  if (report.norms.empty()) {
    findings.push_back(
        {"no_norms", {}, "No tensor in the file looks like the gain of a normalization layer.", {}, 0.5});
  }
  add_image_findings(report, findings);
  add_parameter_findings(report, findings);
  add_head_findings(report, findings);
  add_vocabulary_findings(report, findings);
  // Gains near the limits of double have images whose squares overflow; these get no finding.
  const auto overflowed = [](const Finding& finding) {
    return std::any_of(finding.numbers.begin(), finding.numbers.end(),
                       [](const auto& number) { return !std::isfinite(number.second); });
  };
  findings.erase(std::remove_if(findings.begin(), findings.end(), overflowed), findings.end());
  // Findings about the whole file are reproduced by `inspect`.
  for (Finding& finding : findings) {
    if (finding.reproduce.empty()) finding.reproduce = "normscope inspect " + shell_quoted(report.path);
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

}  // namespace normscope::audit
