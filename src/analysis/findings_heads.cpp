#include <algorithm>
#include <cmath>
#include <set>

#include <normscope/analysis/text.hpp>
#include "finding_rules.hpp"

namespace normscope::analysis {
namespace {

/// "layer 0 head 2, layer 1 head 0 (first pass) and 3 others".
std::string head_names(const Report& report, const std::vector<std::size_t>& which) {
  return first_few(which, [&](std::size_t index) {
    const heads::HeadReach& reach = report.heads[index];
    const models::Head& head = report.model.heads[reach.head];
    return head.place() + (reach.pass.empty()      ? ""
                           : reach.pass == "first" ? " (first pass)"
                                                   : " (later passes)");
  });
}

/// Number of different heads: with shared weights, a report lists a head once for each norm that it reads.
std::size_t count_heads(const Report& report, const std::vector<std::size_t>& which) {
  std::set<std::size_t> heads;
  for (const std::size_t index : which) heads.insert(report.heads[index].head);
  return heads.size();
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
           "possible keys whose weights differ by a factor of at least e (for one of these heads, {}).",
           counted(count_heads(report, which), "head"), head_names(report, which), exp_at_least(most)),
       .numbers = {{"heads", static_cast<double>(count_heads(report, which))}, {"spread", most}},
       .severity = log_severity(most, 1.0, 100.0),
       .reproduce = "normscope heads " + shell_quoted(report.path)});
}

void never_sharp(const Report& report, Findings& findings) {
  std::vector<std::size_t> which;
  std::vector<std::size_t> known;
  double least = INFINITY;
  for (std::size_t i = 0; i < report.heads.size(); ++i) {
    if (!report.heads[i].attention) continue;
    known.push_back(i);
    if (report.heads[i].attention->sharpest.upper >= singling_out) continue;
    which.push_back(i);
    least = std::min(least, report.heads[i].attention->sharpest.upper);
  }
  if (which.empty()) return;
  findings.push_back(
      {.kind = "never_sharp",
       .text =
           fmt::format("{} of {} can never put half of their attention on one of 1024 keys: {}. In the least "
                       "sharp one, any two weights are within a factor of {}.",
                       count_heads(report, which), counted(count_heads(report, known), "head"),
                       head_names(report, which), number_at_most(std::exp(least))),
       .numbers = {{"heads", static_cast<double>(count_heads(report, which))}, {"spread", least}},
       .severity = 0.4,
       .reproduce = "normscope heads " + shell_quoted(report.path)});
}

}  // namespace

void add_head_findings(const Report& report, Findings& findings) {
  never_uniform(report, findings);
  never_sharp(report, findings);
}

}  // namespace normscope::analysis
