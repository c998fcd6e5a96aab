#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <normscope/analysis/text.hpp>
#include "finding_rules.hpp"

namespace normscope::analysis {

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

namespace {

struct Reason {
  std::string_view kind;
  std::string_view why;
};

/// Why each kind of finding matters to someone who reads or changes the model.
constexpr Reason reasons[] = {
    {"stretched_axis",
     "Every map that reads the norm sees this axis larger than the others: it dominates dot products, and "
     "the range that quantized activations need."},
    {"stretched_axes_count",
     "Axes far longer than the median one dominate dot products and quantization ranges."},
    {"concentrated_image",
     "Few directions carry most of what readers of the norm get; methods that treat directions alike "
     "(cosine similarity, random probes) mostly measure these."},
    {"condition_range",
     "Along the shortest axes the norm's output hardly varies: recovering its input from its "
     "output amplifies errors there by up to this factor."},
    {"null_direction", "No layer that reads this norm can use what varies along that direction."},
    {"image_change",
     "The two norms stretch different directions: a probe or a feature of one layer's input does not carry "
     "over to the next without their gains."},
    {"large_bias",
     "Cosine similarities and attention scores of the norm's outputs are dominated by this constant."},
    {"shared_outlier",
     "A feature that many norms single out often holds massive activations; low-precision formats must "
     "leave room for it."},
    {"switched_off",
     "Readers of these norms hardly see the features; small gains also tilt null directions and make "
     "condition numbers large."},
    {"removed_weight",
     "Centring or folding removes this part; lengths and comparisons of raw weights include it."},
    {"feature_reader",
     "A layer that depends on one feature is most sensitive to its quantization or pruning."},
    {"gain_range",
     "Layers read the residual stream at different strengths; learning rates and pruning "
     "thresholds that ignore gains treat layers differently."},
    {"zero_gain",
     "The norm's output has a constant there, whatever the input: readers' weights on it can be removed."},
    {"negative_gain",
     "A feature with a negative gain is read with its sign changed: compare features across norms "
     "by gain times weight."},
    {"not_measured", "These norms have no image, and statements about their readers leave them out."},
    {"constant_gain", "The norm rotates nothing and stretches nothing: its image is a sphere."},
    {"assumed_eps",
     "Rows much smaller than the square root of eps are scaled less than others; bounds that depend "
     "on eps are for the assumed one."},
    {"never_uniform",
     "Such a head cannot average over its context; it prefers some keys whatever the query."},
    {"never_sharp", "Such a head always mixes many tokens: it cannot copy from one."},
    {"unreachable_tokens", "Greedy decoding never produces these tokens, whatever the prompt."},
    {"tied_tokens",
     "Which of them greedy decoding produces is decided by the order of ids, not by the model."},
    {"improbable_token", "Sampling rarely produces this token, whatever the prompt."},
    {"missing_tensors", "Only tensors in the file are named as readers and writers of norms."},
};

}  // namespace

std::vector<Finding> find(const Report& report) {
  Findings findings;
  if (report.norms.empty()) {
    const std::string others = models::other_norms_text(report.model);
    findings.push_back(
        {"no_norms",
         {},
         others.empty()
             ? "No norm was recognized by the names and shapes of the tensors, or in the graph."
             : fmt::format("No norm of the file is of a kind that is analysed: it has {}.", others),
         {},
         0.5});
  }
  add_image_findings(report, findings);
  add_parameter_findings(report, findings);
  add_reader_findings(report, findings);
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
    for (const Reason& reason : reasons) {
      if (reason.kind == finding.kind) finding.why = reason.why;
    }
    if (finding.reproduce.empty()) finding.reproduce = "normscope inspect " + shell_quoted(report.path);
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

}  // namespace normscope::analysis
