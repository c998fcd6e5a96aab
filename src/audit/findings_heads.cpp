#include <algorithm>
#include <cmath>

#include "finding_rules.hpp"
#include "text.hpp"

namespace normscope::audit {
namespace {

/// "layer 0 head 2, layer 1 head 0 and 3 others".
std::string named(const Report& report, const std::vector<std::size_t>& which) {
  return first_few(which, [&](std::size_t index) {
    const model::Head& head = report.model.heads[report.heads[index].head];
    return fmt::format("layer {} head {}", head.layer, head.head);
  });
}

void never_uniform(const Report& report, Findings& findings) {
  std::vector<std::size_t> which;
  double most = 0.0;
  for (std::size_t i = 0; i < report.heads.size(); ++i) {
    if (!report.heads[i].attention || report.heads[i].attention->most_uniform.lower < 1.0) continue;
    which.push_back(i);
    most = std::max(most, report.heads[i].attention->most_uniform.lower);
  }
  if (which.empty()) return;
  findings.push_back(
      {.kind = "never_uniform",
       .text = fmt::format(
           "{} can never attend to all keys alike, in any context: {}. For every query there are two "
           "possible keys whose weights differ by a factor of at least e (for one of these heads, e^{}).",
           counted(which.size(), "head"), named(report, which), number_at_least(most)),
       .numbers = {{"heads", static_cast<double>(which.size())}, {"spread", most}},
       .severity = log_severity(most, 1.0, 100.0),
       .reproduce = "normscope heads " + shell_quoted(report.path)});
}

void never_sharp(const Report& report, Findings& findings) {
  std::vector<std::size_t> which;
  std::size_t known = 0;
  double least = INFINITY;
  for (std::size_t i = 0; i < report.heads.size(); ++i) {
    if (!report.heads[i].attention) continue;
    ++known;
    if (report.heads[i].attention->sharpest.upper >= singling_out) continue;
    which.push_back(i);
    least = std::min(least, report.heads[i].attention->sharpest.upper);
  }
  if (which.empty()) return;
  findings.push_back(
      {.kind = "never_sharp",
       .text = fmt::format(
           "{} of {} can never put half of their attention on one of 1024 keys: {}. In the least "
           "sharp one, any two weights are within a factor of {}.",
           which.size(), counted(known, "head"), named(report, which), number_at_most(std::exp(least))),
       .numbers = {{"heads", static_cast<double>(which.size())}, {"spread", least}},
       .severity = 0.4,
       .reproduce = "normscope heads " + shell_quoted(report.path)});
}

}  // namespace

void add_head_findings(const Report& report, Findings& findings) {
  never_uniform(report, findings);
  never_sharp(report, findings);
}

}  // namespace normscope::audit
