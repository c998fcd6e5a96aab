#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <normscope/analysis/text.hpp>
#include "finding_rules.hpp"

namespace normscope::analysis {
namespace {

/// A number of a finding; 0 if it has none of that name.
double number_of(const Finding& finding, std::string_view name) {
  for (const auto& [of, value] : finding.numbers) {
    if (of == name) return value;
  }
  return 0.0;
}

std::string percent(double share) { return number(100.0 * share) + " %"; }
std::string times(double ratio) { return number(ratio) + " ×"; }

/// "query, key and value of layer 3"; empty where not all readers are known.
std::string readers_of(const models::Norm& norm) {
  if (!norm.readers_known || norm.readers.empty()) return "";
  std::vector<std::string> roles;
  for (const models::Linear& reader : norm.readers) {
    if (std::find(roles.begin(), roles.end(), reader.role) == roles.end()) roles.push_back(reader.role);
  }
  std::string text;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == roles.size() ? " and " : ", ") + roles[i];
  }
  return norm.layer ? fmt::format("{} of layer {}", text, *norm.layer) : text;
}

/// The token that uses a coordinate of the norm's stream most, as a sentence; empty where no embedding was
/// read.
std::string embedding_sentence(const Report& report, std::size_t norm, double coordinate) {
  for (const UnusualFeature& feature : report.features) {
    if (static_cast<double>(feature.coordinate) != coordinate || !feature.embedding) continue;
    if (feature.embedding->rows.empty()) continue;
    if (std::find(feature.norms.begin(), feature.norms.end(), norm) == feature.norms.end()) continue;
    const EmbeddingRow& row = feature.embedding->rows.front();
    return fmt::format(
        " In the token embedding its mean square is {} times that of a coordinate, and it is {} "
        "of the squared length of the row of {}.",
        number(feature.embedding->over_mean), percent(row.share),
        row.name.empty() ? fmt::format("token {}", row.token)
                         : fmt::format("token {} \"{}\"", row.token, row.name));
  }
  return "";
}

/// " before its bias" for a norm that has one.
const char* before_bias(const models::Norm& norm) { return norm.bias ? " before its bias" : ""; }

/// What follows from the longest axis of a norm, whether it is unusual or not.
Headline longest_axis(const Report& report, std::size_t index) {
  const NormReport& norm = report.norms[index];
  const double ratio = norm.image->top_axes[0].ratio_to_median;
  const std::string readers = readers_of(norm.norm);
  return {
      .topic = Topic::axes,
      .number = times(ratio),
      .of = fmt::format("longest over median axis of {}", norm.norm.name),
      .why = fmt::format("One int8 scale for what {} outputs{} that holds its longest axis leaves the median "
                         "one {} of 127 steps{}.",
                         norm.norm.name, before_bias(norm.norm), number(127.0 / ratio),
                         readers.empty() ? "" : fmt::format(", for {}", readers)),
      .norm = index};
}

Headline stretched_axis(const Report& report, const Finding& finding) {
  return longest_axis(report, *finding.norm);
}

Headline concentrated_image(const Report& report, const Finding& finding) {
  const NormReport& norm = report.norms[*finding.norm];
  return {
      .number = number(norm.image->effective_dimension),
      .of = fmt::format("effective dimension of {}, of {}", norm.norm.name, norm.image->semi_axes),
      .why = fmt::format("Averaged over inputs in all directions alike, {} of the squared length of what {} "
                         "outputs{} lies along one axis, and {} along eight.",
                         percent(norm.image->energy_top_1), norm.norm.name, before_bias(norm.norm),
                         percent(norm.image->energy_top_8))};
}

Headline condition_range(const Report& report, const Finding& finding) {
  const NormReport& norm = report.norms[*finding.norm];
  return {.number = fmt::format("{} : 1", number(norm.image->condition)),
          .of = fmt::format("longest to shortest axis of {}", norm.norm.name),
          .why = fmt::format("What {} outputs{} reaches {} along its longest axis and {} along its shortest: "
                             "recovering the input multiplies an error along the second {} times as much "
                             "as one along the first.",
                             norm.norm.name, before_bias(norm.norm), number(norm.image->longest),
                             number(norm.image->shortest), number(norm.image->condition))};
}

Headline null_direction(const Report& report, const Finding& finding) {
  const NormReport& norm = report.norms[*finding.norm];
  const std::string readers = readers_of(norm.norm);
  return {
      .number = fmt::format("{:.3f}", number_of(finding, "cosine_to_ones")),
      .of = fmt::format("cosine between all-ones and what {} removes", norm.norm.name),
      .why = fmt::format("Weights along that direction ({} of its squared length is coordinate {:.0f}) give "
                         "{} the same number for every input of {}.",
                         percent(number_of(finding, "weight") * number_of(finding, "weight")),
                         number_of(finding, "coordinate"),
                         readers.empty() ? "every map that reads it" : readers, norm.norm.name)};
}

Headline large_bias(const Report& report, const Finding& finding) {
  const NormReport& norm = report.norms[*finding.norm];
  const double ratio = number_of(finding, "shift_over_radius");
  return {
      .number = times(ratio),
      .of = fmt::format("length of the bias over the radius of {}", norm.norm.name),
      .why = fmt::format("Averaged over inputs in all directions alike, {} of the squared length of what {} "
                         "outputs is the bias, which no input changes.",
                         percent(ratio * ratio / (1.0 + ratio * ratio)), norm.norm.name)};
}

Headline shared_outlier(const Report& report, const Finding& finding) {
  const NormReport& first = report.norms[*finding.norm];
  const double coordinate = number_of(finding, "coordinate");
  return {
      .number = fmt::format("{:.0f} norms", number_of(finding, "norms")),
      .of = fmt::format("single out coordinate {:.0f}, the first {}", coordinate, first.norm.name),
      .why = fmt::format("Each multiplies it by at least {:g} times the median of its gains: an int8 scale "
                         "that holds this coordinate leaves a median one at most {} of 127 steps, before "
                         "biases.{}",
                         outlier_ratio, number(127.0 / outlier_ratio),
                         embedding_sentence(report, *finding.norm, coordinate))};
}

Headline switched_off(const Report& report, const Finding& finding) {
  const NormReport& first = report.norms[*finding.norm];
  const double gains = number_of(finding, "gains");
  const double norms = number_of(finding, "norms");
  const std::string where =
      norms == 1.0 ? first.norm.name : fmt::format("{:.0f} norms, the first {}", norms, first.norm.name);
  return {.number = fmt::format("{:.0f} {}", gains, gains == 1.0 ? "gain" : "gains"),
          .of = "near zero in " + where,
          .why = fmt::format(
              "At most {:g} % of the median gain is left of {}: to get as much of it as of a typical "
              "feature, what reads {} needs weights at least {:g} times as large.",
              100.0 * off_ratio, gains == 1.0 ? "this feature" : "each of these features", first.norm.name,
              1.0 / off_ratio)};
}

Headline removed_weight(const Report& report, const Finding& finding) {
  const NormReport& norm = report.norms[*finding.norm];
  return {
      .number = percent(number_of(finding, "removed")),
      .of = fmt::format("of a reader's squared weight behind {} has no effect", norm.norm.name),
      .why = fmt::format("It lies along what {} removes ({} by chance): centring the weights takes it away "
                         "and leaves the outputs as they are.",
                         norm.norm.name, percent(number_of(finding, "chance")))};
}

/// The first head of `report` which `holds` and whose norm is known; null if there is none.
template <typename Holds>
const heads::HeadReach* find_head(const Report& report, Holds holds) {
  for (const heads::HeadReach& reach : report.heads) {
    if (reach.attention && !reach.norm.empty() && holds(*reach.attention)) return &reach;
  }
  return nullptr;
}

std::string heads_text(const Finding& finding) {
  const double heads = number_of(finding, "heads");
  return fmt::format("{:.0f} {}", heads, heads == 1.0 ? "head" : "heads");
}

std::optional<Headline> never_sharp(const Report& report, const Finding& finding) {
  const double spread = number_of(finding, "spread");
  const heads::HeadReach* const head =
      find_head(report, [&](const auto& attention) { return attention.sharpest.upper == spread; });
  if (head == nullptr) return {};
  const auto& distances = head->attention->distances;
  const std::size_t keys = distances ? std::min<std::size_t>(distances->within, 1024) : 1024;
  if (keys < 2) return {};
  const double factor = std::exp(spread);
  return Headline{
      .number = heads_text(finding),
      .of = "can never put half of their attention on one of 1024 keys",
      .why = fmt::format(
          "The least sharp one reads {}: whatever its query, none of {} keys gets more than {} % "
          "of its attention, so it cannot copy from one token.",
          head->norm, keys, number_at_most(100.0 * factor / (factor + static_cast<double>(keys - 1))))};
}

std::optional<Headline> never_uniform(const Report& report, const Finding& finding) {
  const double spread = number_of(finding, "spread");
  const heads::HeadReach* const head =
      find_head(report, [&](const auto& attention) { return attention.most_uniform.lower == spread; });
  if (head == nullptr) return {};
  return Headline{
      .number = heads_text(finding),
      .of = "can never attend to all keys alike",
      .why = fmt::format("For one that reads {}, whatever its query, some possible key has at least "
                         "{} times the weight of another: it cannot average over every context.",
                         head->norm, exp_at_least(spread))};
}

std::optional<Headline> unreachable_tokens(const Report& report, const Finding& finding) {
  const double tokens = number_of(finding, "unreachable");
  return Headline{.number = fmt::format("{:.0f} {}", tokens, tokens == 1.0 ? "token" : "tokens"),
                  .of = "can never have the largest logit",
                  .why = fmt::format("Whatever {} outputs, another token has a larger logit: greedy decoding "
                                     "produces none of them, whatever the prompt.",
                                     report.model.vocabulary->final_norm)};
}

std::optional<Headline> improbable_token(const Report& report, const Finding& finding) {
  const double most = number_of(finding, "probability");
  return Headline{
      .number = number_at_most(most),
      .of = fmt::format(
          "is the largest probability of {} in any context",
          selectability::token_name(report.vocabulary.names, report.vocabulary.survey->least_probable(1)[0])),
      .why =
          fmt::format("No output of {} gives it more: sampled at temperature 1, another token comes next in "
                      "at least {} % of draws, whatever the prompt.",
                      report.model.vocabulary->final_norm, number_at_least(100.0 * (1.0 - most)))};
}

/// Whether the statements about a norm hold for it.
bool normalizes(const Report& report, const Finding& finding) {
  return finding.norm && report.norms[*finding.norm].norm.effect() == NormEffect::normalizes;
}

struct NormRule {
  std::string_view kind;
  Topic topic;
  Headline (*write)(const Report&, const Finding&);
};

constexpr NormRule norm_rules[] = {
    {"stretched_axis", Topic::axes, stretched_axis},
    {"concentrated_image", Topic::axes, concentrated_image},
    {"condition_range", Topic::axes, condition_range},
    {"null_direction", Topic::null_direction, null_direction},
    {"large_bias", Topic::bias, large_bias},
    {"shared_outlier", Topic::features, shared_outlier},
    {"switched_off", Topic::features, switched_off},
    {"removed_weight", Topic::null_direction, removed_weight},
};

struct ModelRule {
  std::string_view kind;
  Topic topic;
  std::optional<Headline> (*write)(const Report&, const Finding&);
};

constexpr ModelRule model_rules[] = {
    {"never_sharp", Topic::heads, never_sharp},
    {"never_uniform", Topic::heads, never_uniform},
    {"unreachable_tokens", Topic::tokens, unreachable_tokens},
    {"improbable_token", Topic::tokens, improbable_token},
};

/// Headlines on topics that none is about yet.
class Headlines {
 public:
  [[nodiscard]] bool is_open(Topic topic) const {
    return all_.size() < most_headlines &&
           std::none_of(all_.begin(), all_.end(), [&](const Headline& one) { return one.topic == topic; });
  }
  void add(Headline headline) { all_.push_back(std::move(headline)); }
  [[nodiscard]] std::vector<Headline> take() { return std::move(all_); }

 private:
  std::vector<Headline> all_{};
};

void add_finding(const Report& report, std::size_t index, Headlines& headlines) {
  const Finding& finding = report.findings[index];
  std::optional<Headline> headline;
  for (const NormRule& rule : norm_rules) {
    if (rule.kind != finding.kind || !headlines.is_open(rule.topic) || !normalizes(report, finding)) continue;
    headline = rule.write(report, finding);
    headline->topic = rule.topic;
  }
  for (const ModelRule& rule : model_rules) {
    if (rule.kind != finding.kind || !headlines.is_open(rule.topic) || !report.model.is_known()) continue;
    headline = rule.write(report, finding);
    if (headline) headline->topic = rule.topic;
  }
  if (!headline) return;
  headline->norm = finding.norm;
  headline->finding = index;
  headlines.add(std::move(*headline));
}

/// The most stretched norm, though its axes are nothing unusual.
void add_axes(const Report& report, Headlines& headlines) {
  std::optional<std::size_t> most;
  const auto ratio = [&](std::size_t i) { return report.norms[i].image->top_axes[0].ratio_to_median; };
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    const NormReport& norm = report.norms[i];
    if (!norm.image || norm.image->top_axes.empty() || norm.norm.effect() != NormEffect::normalizes) continue;
    if (std::isfinite(ratio(i)) && (!most || ratio(i) > ratio(*most))) most = i;
  }
  if (most) headlines.add(longest_axis(report, *most));
}

/// That every token can be output, though that is nothing unusual.
void add_tokens(const Report& report, Headlines& headlines) {
  if (!report.model.is_known() || !report.vocabulary.survey || !report.model.vocabulary) return;
  const std::size_t tokens = report.vocabulary.survey->tokens.size();
  if (tokens == 0 || report.vocabulary.survey->with(proof::Answer::yes).size() != tokens) return;
  headlines.add({.topic = Topic::tokens,
                 .number = fmt::format("{} of {}", tokens, tokens),
                 .of = "tokens can have the largest logit",
                 .why = fmt::format("For each there are outputs of {} at which no other token has a larger "
                                    "logit: the norm rules none of them out.",
                                    report.model.vocabulary->final_norm)});
}

/// How many heads can single out a key, though that is nothing unusual.
void add_heads(const Report& report, Headlines& headlines) {
  if (!report.model.is_known()) return;
  std::size_t known = 0;
  std::size_t sharp = 0;
  const heads::HeadReach* sharpest = nullptr;
  for (const heads::HeadReach& reach : report.heads) {
    // The keys of a rotary head are at different positions; a spread of two then says less.
    if (!reach.attention || reach.attention->distances || reach.norm.empty() || reach.pass == "later")
      continue;
    ++known;
    if (reach.attention->sharpest.lower < singling_out) continue;
    ++sharp;
    if (sharpest == nullptr || reach.attention->sharpest.lower > sharpest->attention->sharpest.lower) {
      sharpest = &reach;
    }
  }
  if (sharpest == nullptr) return;
  headlines.add(
      {.topic = Topic::heads,
       .number = fmt::format("{} of {}", sharp, counted(known, "head")),
       .of = "can put half of their attention on one of 1024 keys",
       .why = fmt::format("In the sharpest one, which reads {}, a key can have {} times the weight of "
                          "another.",
                          sharpest->norm, exp_at_least(sharpest->attention->sharpest.lower))});
}

}  // namespace

std::string_view to_string(Topic topic) {
  switch (topic) {
    case Topic::axes: return "axes";
    case Topic::null_direction: return "null direction";
    case Topic::features: return "features";
    case Topic::bias: return "bias";
    case Topic::heads: return "heads";
    case Topic::tokens: return "tokens";
  }
  return "";
}

std::vector<Headline> headlines(const Report& report) {
  Headlines result;
  for (std::size_t i = 0; i < report.findings.size(); ++i) add_finding(report, i, result);
  if (result.is_open(Topic::axes)) add_axes(report, result);
  if (result.is_open(Topic::tokens)) add_tokens(report, result);
  if (result.is_open(Topic::heads)) add_heads(report, result);
  return result.take();
}

}  // namespace normscope::analysis
