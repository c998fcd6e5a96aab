#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

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

namespace {

/// Largest probability below which a token gets a finding.
constexpr double improbable = 0.5;

std::string token_names(const Report& report, const std::vector<std::size_t>& which) {
  return first_few(
      which, [&](std::size_t token) { return selectability::token_name(report.vocabulary.names, token); });
}

}  // namespace

void add_vocabulary_findings(const Report& report, Findings& findings) {
  if (!report.vocabulary.survey) return;
  const selectability::Survey& survey = *report.vocabulary.survey;
  const std::string reproduce = "normscope reach " + shell_quoted(report.path);
  const std::vector<std::vector<std::size_t>>& ties = report.vocabulary.ties;
  const std::vector<std::size_t> unreachable =
      selectability::without_ties(survey.with(proof::Answer::no), ties);
  if (!unreachable.empty()) {
    const auto without_bound = static_cast<std::size_t>(std::count_if(
        unreachable.begin(), unreachable.end(),
        [&](std::size_t token) { return survey.tokens[token].unbounded == proof::Answer::no; }));
    findings.push_back({.kind = "unreachable_tokens",
                        .text = fmt::format("{} of {} can never have the largest logit after the final norm: "
                                            "{}. Without the norm's bound on hidden states it would be {}.",
                                            unreachable.size(), counted(survey.tokens.size(), "token"),
                                            token_names(report, unreachable), without_bound),
                        .numbers = {{"unreachable", static_cast<double>(unreachable.size())},
                                    {"without_bound", static_cast<double>(without_bound)}},
                        .severity = 0.8,
                        .reproduce = reproduce});
  }
  if (!ties.empty()) {
    const std::vector<std::size_t>& first = ties.front();
    std::size_t tied = 0;
    for (const std::vector<std::size_t>& group : ties) tied += group.size();
    findings.push_back(
        {.kind = "tied_tokens",
         .text = fmt::format(
             "{} of {} have the weights of another token, so that their logits are always equal: {} in the "
             "first of {}.",
             tied, counted(survey.tokens.size(), "token"), token_names(report, first),
             counted(ties.size(), "group")),
         .numbers = {{"tokens", static_cast<double>(tied)}, {"groups", static_cast<double>(ties.size())}},
         .severity = 0.3,
         .reproduce = reproduce});
  }
  const std::vector<std::size_t> least = survey.least_probable(1);
  if (!least.empty() && survey.probabilities[least[0]].upper < improbable) {
    const double most = survey.probabilities[least[0]].upper;
    findings.push_back({.kind = "improbable_token",
                        .text = fmt::format("No context gives {} a probability above {}.",
                                            token_names(report, least), number_at_most(most)),
                        .numbers = {{"probability", most}},
                        .severity = 0.5,
                        .reproduce = reproduce});
  }
}

namespace {

/// Share of a reader's squared weight from which its removal is a finding, also as a multiple of chance.
constexpr double much_removed = 0.05;
constexpr double times_chance = 10.0;
/// Multiple of the mean share from which a reader is said to read a feature.
constexpr double times_mean = 20.0;

std::string reader_name(const NormReport& norm, const Reader& reader) {
  const models::Linear& linear = norm.norm.readers[reader.index];
  return fmt::format("{} ({})", linear.role, linear.weight.selector());
}

void removed_weight(const Report& report, Findings& findings) {
  const NormReport* norm = nullptr;
  const Reader* most = nullptr;
  for (const NormReport& one : report.norms) {
    for (const Reader& reader : one.readers) {
      if (reader.removed < std::max(much_removed, times_chance * reader.chance)) continue;
      if (most != nullptr && reader.removed <= most->removed) continue;
      norm = &one;
      most = &reader;
    }
  }
  if (most == nullptr) return;
  findings.push_back(
      {.kind = "removed_weight",
       .norm = static_cast<std::size_t>(norm - report.norms.data()),
       .text = fmt::format("{} % of the squared weight of {} lies along what the projection of {} "
                           "removes, against {} % by chance: it has no effect.",
                           number(100.0 * most->removed), reader_name(*norm, *most), norm->norm.name,
                           number(100.0 * most->chance)),
       .numbers = {{"removed", most->removed}, {"chance", most->chance}},
       .severity = 0.3 + 0.4 * most->removed,
       .reproduce = norm->reproduce});
}

/// The reader that uses the feature that is unusual in most norms.
void feature_readers(const Report& report, Findings& findings) {
  if (report.features.empty() || report.features[0].unusual() < 2) return;
  const UnusualFeature& feature = report.features[0];
  const NormReport* norm = nullptr;
  const Reader* most = nullptr;
  double largest = 0.0;
  for (const std::size_t i : feature.norms) {
    const NormReport& one = report.norms[i];
    for (const Reader& reader : one.readers) {
      for (const Component& component : reader.features) {
        if (component.coordinate != feature.coordinate || component.weight <= largest) continue;
        if (component.weight * static_cast<double>(one.norm.width) < times_mean) continue;
        largest = component.weight;
        norm = &one;
        most = &reader;
      }
    }
  }
  if (most == nullptr) return;
  findings.push_back(
      {.kind = "feature_reader",
       .norm = static_cast<std::size_t>(norm - report.norms.data()),
       .text =
           fmt::format("Coordinate {}, unusual in {} of {} norms, is read most by {}: {} % of its squared "
                       "weight with the gain, {} times the mean of all coordinates.",
                       feature.coordinate, feature.unusual(), feature.norms.size(), reader_name(*norm, *most),
                       number(100.0 * largest), number(largest * static_cast<double>(norm->norm.width))),
       .numbers = {{"coordinate", static_cast<double>(feature.coordinate)}, {"share", largest}},
       .severity = 0.3,
       .reproduce = norm->reproduce});
}

}  // namespace

void add_reader_findings(const Report& report, Findings& findings) {
  removed_weight(report, findings);
  feature_readers(report, findings);
}

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
