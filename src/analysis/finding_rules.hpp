#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <normscope/analysis/report.hpp>
#include <normscope/core/text.hpp>

/// The rules of `find`: each examines the whole report and adds its findings.
namespace normscope::analysis {

using Findings = std::vector<Finding>;

/// Largest number of norms that a finding names; the others are counted.
inline constexpr std::size_t named_per_rule = 3;

/// 0 at `low`, 1 at `high`, logarithmic in between.
[[nodiscard]] double log_severity(double value, double low, double high);

/// "a", "a and b", "a, b, c and 9 others": the names of the norms in `which`.
[[nodiscard]] std::string names(const Report& report, const std::vector<std::size_t>& which);

/// "a, b, c and 9 others" for heads and tokens, each formatted by `name`.
template <typename Name>
[[nodiscard]] std::string first_few(const std::vector<std::size_t>& which, const Name& name) {
  std::string text;
  const std::size_t shown = std::min(which.size(), named_per_rule);
  for (std::size_t k = 0; k < shown; ++k) text += (k == 0 ? "" : ", ") + name(which[k]);
  return which.size() == shown ? text : text + " and " + counted(which.size() - shown, "other");
}

/// Images: stretch, concentration, condition, null directions, neighbours, shift.
void add_image_findings(const Report& report, Findings& findings);
/// Gains, eps and what the file does not state.
void add_parameter_findings(const Report& report, Findings& findings);
/// Weights of readers: weights without effect, and the reader that uses a feature most.
void add_reader_findings(const Report& report, Findings& findings);
/// Heads that can never attend uniformly, or never sharply.
void add_head_findings(const Report& report, Findings& findings);
/// Tokens that can never have the largest logit, or never be likely.
void add_vocabulary_findings(const Report& report, Findings& findings);

}  // namespace normscope::analysis
