#include <algorithm>
#include <cmath>

#include <normscope/analysis/findings.hpp>
#include <normscope/analysis/report.hpp>

namespace normscope::analysis {
namespace {

/// The topic of the headline that states a finding; empty for one of which nothing definite follows.
class TopicOf {
 public:
  TopicOf(const Report& report, const Finding& finding) : report_(report), finding_(finding) {}

  std::optional<Topic> operator()(const StretchedAxis& /*found*/) const { return about_norm(Topic::axes); }
  std::optional<Topic> operator()(const ConcentratedImage& /*found*/) const {
    return about_norm(Topic::axes);
  }
  std::optional<Topic> operator()(const ConditionRange& /*found*/) const { return about_norm(Topic::axes); }
  std::optional<Topic> operator()(const NullDirection& /*found*/) const {
    return about_norm(Topic::null_direction);
  }
  std::optional<Topic> operator()(const RemovedWeight& /*found*/) const {
    return about_norm(Topic::null_direction);
  }
  std::optional<Topic> operator()(const LargeBias& /*found*/) const { return about_norm(Topic::bias); }
  std::optional<Topic> operator()(const SharedOutlier& /*found*/) const {
    return about_norm(Topic::features);
  }
  std::optional<Topic> operator()(const SwitchedOff& /*found*/) const { return about_norm(Topic::features); }
  std::optional<Topic> operator()(const NeverUniform& found) const { return about_head(found.extreme); }
  std::optional<Topic> operator()(const NeverSharp& found) const {
    const std::optional<heads::Attention>& attention = report_.heads[found.extreme].attention;
    // At a single position there are no keys to compare.
    if (attention->distances && attention->distances->within < 2) return {};
    return about_head(found.extreme);
  }
  std::optional<Topic> operator()(const UnreachableTokens& /*found*/) const { return about_tokens(); }
  std::optional<Topic> operator()(const ImprobableToken& /*found*/) const { return about_tokens(); }
  template <typename Other>
  std::optional<Topic> operator()(const Other& /*found*/) const {
    return {};
  }

 private:
  [[nodiscard]] std::optional<Topic> about_norm(Topic topic) const {
    const bool normalizes =
        finding_.norm && report_.norms[*finding_.norm].norm.effect() == NormEffect::normalizes;
    return normalizes ? std::optional(topic) : std::nullopt;
  }
  [[nodiscard]] std::optional<Topic> about_head(std::size_t head) const {
    const bool known = report_.model.is_known() && !report_.heads[head].norm.empty();
    return known ? std::optional(Topic::heads) : std::nullopt;
  }
  [[nodiscard]] std::optional<Topic> about_tokens() const {
    return report_.model.is_known() ? std::optional(Topic::tokens) : std::nullopt;
  }

  const Report& report_;
  const Finding& finding_;
};

std::optional<LongestAxis> longest_axis(const Report& report) {
  std::optional<std::size_t> most;
  const auto ratio = [&](std::size_t i) { return report.norms[i].image->top_axes[0].ratio_to_median; };
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    const NormReport& norm = report.norms[i];
    if (!norm.image || norm.image->top_axes.empty() || norm.norm.effect() != NormEffect::normalizes) continue;
    if (std::isfinite(ratio(i)) && (!most || ratio(i) > ratio(*most))) most = i;
  }
  return most ? std::optional(LongestAxis{*most}) : std::nullopt;
}

std::optional<ReachableTokens> reachable_tokens(const Report& report) {
  if (!report.model.is_known() || !report.vocabulary.survey || !report.model.vocabulary) return {};
  const std::size_t tokens = report.vocabulary.survey->tokens.size();
  if (tokens == 0 || report.vocabulary.survey->with(proof::Answer::yes).size() != tokens) return {};
  return ReachableTokens{tokens};
}

std::optional<SharpHeads> sharp_heads(const Report& report) {
  if (!report.model.is_known()) return {};
  SharpHeads found;
  double most = 0.0;
  for (std::size_t i = 0; i < report.heads.size(); ++i) {
    const heads::HeadReach& reach = report.heads[i];
    // The keys of a rotary head are at different positions; a spread of two then says less.
    if (!reach.attention || reach.attention->distances || reach.norm.empty() || reach.pass == "later") {
      continue;
    }
    ++found.known;
    if (reach.attention->sharpest.lower < singling_out) continue;
    if (++found.sharp == 1 || reach.attention->sharpest.lower > most) {
      found.sharpest = i;
      most = reach.attention->sharpest.lower;
    }
  }
  return found.sharp > 0 ? std::optional(found) : std::nullopt;
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
  std::vector<Headline> result;
  const auto is_open = [&](Topic topic) {
    return result.size() < most_headlines &&
           std::none_of(result.begin(), result.end(),
                        [&](const Headline& one) { return one.topic == topic; });
  };
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    const Finding& finding = report.findings[i];
    const std::optional<Topic> topic = std::visit(TopicOf(report, finding), finding.property);
    if (topic && is_open(*topic)) result.push_back({*topic, FindingIndex{i}});
  }
  const auto add = [&](Topic topic, const auto& statement) {
    if (statement && is_open(topic)) result.push_back({topic, *statement});
  };
  add(Topic::axes, longest_axis(report));
  add(Topic::tokens, reachable_tokens(report));
  add(Topic::heads, sharp_heads(report));
  return result;
}

}  // namespace normscope::analysis
