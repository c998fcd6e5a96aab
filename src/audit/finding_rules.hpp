#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <normscope/audit/report.hpp>
#include <normscope/core/text.hpp>

/// The rules behind `find`: each looks at the whole report and adds the sentences it has to say.
namespace normscope::audit {

using Findings = std::vector<Finding>;

/// A rule names at most this many norms; counts speak for the rest.
inline constexpr std::size_t named_per_rule = 3;

/// Spread of scores from which one of 1024 keys can hold half of a softmax: ln 1023.
inline constexpr double singling_out = 6.930495165951;

/// Between 0 at `low` and 1 at `high`, by the logarithm.
[[nodiscard]] double log_severity(double value, double low, double high);

/// "a", "a and b", "a, b, c and 9 others": the names of the norms in `which`.
[[nodiscard]] std::string names(const Report& report, const std::vector<std::size_t>& which);

/// "a, b, c and 9 others" of heads and tokens, each as `name` spells it.
template <typename Name>
[[nodiscard]] std::string first_few(const std::vector<std::size_t>& which, const Name& name) {
  std::string text;
  const std::size_t shown = std::min(which.size(), named_per_rule);
  for (std::size_t k = 0; k < shown; ++k) text += (k == 0 ? "" : ", ") + name(which[k]);
  return which.size() == shown ? text : text + " and " + counted(which.size() - shown, "other");
}

/// About images: stretch, concentration, condition, null directions, neighbours, shift.
void add_image_findings(const Report& report, Findings& findings);
/// About gains, eps and what the file does not say.
void add_parameter_findings(const Report& report, Findings& findings);
/// About heads: which can never attend uniformly, or never sharply.
void add_head_findings(const Report& report, Findings& findings);
/// About the vocabulary: tokens that can never win, or never be likely.
void add_vocabulary_findings(const Report& report, Findings& findings);

}  // namespace normscope::audit
