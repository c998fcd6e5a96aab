#include <normscope/results/words.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace normscope::results {
namespace {

using analysis::off_ratio;
using analysis::outlier_ratio;

std::string percent(double share) { return format_number(100.0 * share) + " %"; }
std::string times(double ratio) { return format_number(ratio) + " ×"; }

/// The words of a headline that states a finding, by kind; of one that states something else, by its type.
class HeadlineWords {
 public:
  HeadlineWords(const analysis::Report& report, std::optional<std::size_t> norm)
      : report_(report), norm_(norm) {}

  HeadlineText operator()(const analysis::StretchedAxis& /*found*/) const { return longest_axis(*norm_); }
  HeadlineText operator()(const analysis::LongestAxis& found) const { return longest_axis(found.norm); }

  HeadlineText operator()(const analysis::ConcentratedImage& found) const {
    return {format_number(found.effective_dimension),
            fmt::format("effective dimension of {}, of {}", name(), norm().image->semi_axes),
            fmt::format("Averaged over inputs in all directions alike, {} of the squared length of what {} "
                        "outputs{} lies along one axis, and {} along eight.",
                        percent(found.energy_top_1), name(), before_bias(norm().norm),
                        percent(found.energy_top_8))};
  }

  HeadlineText operator()(const analysis::ConditionRange& found) const {
    return {fmt::format("{} : 1", format_number(found.most)),
            fmt::format("longest to shortest axis of {}", name()),
            fmt::format("What {} outputs{} reaches {} along its longest axis and {} along its shortest: "
                        "recovering the input multiplies an error along the second {} times as much "
                        "as one along the first.",
                        name(), before_bias(norm().norm), format_number(norm().image->longest),
                        format_number(norm().image->shortest), format_number(found.most))};
  }

  HeadlineText operator()(const analysis::NullDirection& found) const {
    const std::string readers = readers_of(norm().norm);
    return {fmt::format("{:.3f}", found.cosine_to_ones),
            fmt::format("cosine between all-ones and what {} removes", name()),
            fmt::format("Weights along that direction ({} of its squared length is coordinate {}) give "
                        "{} the same number for every input of {}.",
                        percent(found.largest.weight * found.largest.weight), found.largest.coordinate,
                        readers.empty() ? "every map that reads it" : readers, name())};
  }

  HeadlineText operator()(const analysis::LargeBias& found) const {
    const double ratio = found.shift_over_radius;
    return {times(ratio), fmt::format("length of the bias over the radius of {}", name()),
            fmt::format("Averaged over inputs in all directions alike, {} of the squared length of what {} "
                        "outputs is the bias, which no input changes.",
                        percent(ratio * ratio / (1.0 + ratio * ratio)), name())};
  }

  HeadlineText operator()(const analysis::SharedOutlier& found) const {
    return {fmt::format("{} norms", found.norms.size()),
            fmt::format("single out coordinate {}, the first {}", found.coordinate, name()),
            fmt::format(
                "Each multiplies it by at least {:g} times the median of its gains: with one int8 scale for "
                "all features, a typical feature uses at most {} of 127 steps, before biases.{}",
                outlier_ratio, format_number(127.0 / outlier_ratio), embedding_sentence(found.coordinate))};
  }

  HeadlineText operator()(const analysis::SwitchedOff& found) const {
    const bool one = found.gains == 1;
    return {counted(found.gains, "gain"),
            "near zero in " +
                (found.norms == 1 ? name() : fmt::format("{} norms, the first {}", found.norms, name())),
            fmt::format("{} at most {:g} % of the median gain: to get as much of {} as of a typical "
                        "feature, what reads {} needs weights at least {:g} times as large.",
                        one ? "The gain of this feature is" : "The gains of these features are",
                        100.0 * off_ratio, one ? "it" : "each of them", name(), 1.0 / off_ratio)};
  }

  HeadlineText operator()(const analysis::RemovedWeight& found) const {
    return {percent(found.removed),
            fmt::format("of a reader's squared weight behind {} has no effect", name()),
            fmt::format("It lies along what {} removes ({} by chance): centring the weights takes it away "
                        "and leaves the outputs as they are.",
                        name(), percent(found.chance))};
  }

  HeadlineText operator()(const analysis::NeverSharp& found) const {
    const heads::HeadReach& head = report_.heads[found.extreme];
    const auto& distances = head.attention->distances;
    const std::size_t keys = distances ? std::min<std::size_t>(distances->within, 1024) : 1024;
    const double factor = std::exp(found.spread);
    return {counted(found.different, "head"), "can never put half of their attention on one of 1024 keys",
            fmt::format(
                "The least sharp one reads {}: whatever its query, none of {} keys gets more than {} % "
                "of its attention, so it cannot copy from one token.",
                head.norm, keys, format_at_most(100.0 * factor / (factor + static_cast<double>(keys - 1))))};
  }

  HeadlineText operator()(const analysis::NeverUniform& found) const {
    return {counted(found.different, "head"), "can never attend to all keys alike",
            fmt::format("For one that reads {}, whatever its query, some possible key has at least "
                        "{} times the weight of another: it cannot average over every context.",
                        report_.heads[found.extreme].norm, format_exp_at_least(found.spread))};
  }

  HeadlineText operator()(const analysis::SharpHeads& found) const {
    const heads::HeadReach& sharpest = report_.heads[found.sharpest];
    return {fmt::format("{} of {}", found.sharp, counted(found.known, "head")),
            "can put half of their attention on one of 1024 keys",
            fmt::format("In the sharpest one, which reads {}, a key can have {} times the weight of another.",
                        sharpest.norm, format_exp_at_least(sharpest.attention->sharpest.lower))};
  }

  HeadlineText operator()(const analysis::UnreachableTokens& found) const {
    return {counted(found.tokens.size(), "token"), "can never have the largest logit",
            fmt::format("Whatever {} outputs, another token has a larger logit: greedy decoding "
                        "produces none of them, whatever the prompt.",
                        report_.model.vocabulary->final_norm)};
  }

  HeadlineText operator()(const analysis::ImprobableToken& found) const {
    return {format_at_most(found.probability),
            fmt::format("is the largest probability of {} in any context",
                        selectability::token_name(report_.vocabulary.names, found.token)),
            fmt::format(
                "No output of {} gives it more: sampled at temperature 1, another token comes next in "
                "at least {} % of draws, whatever the prompt.",
                report_.model.vocabulary->final_norm, format_at_least(100.0 * (1.0 - found.probability)))};
  }

  HeadlineText operator()(const analysis::ReachableTokens& found) const {
    return {fmt::format("{} of {}", found.tokens, found.tokens), "tokens can have the largest logit",
            fmt::format("For each there are outputs of {} at which no other token has a larger "
                        "logit: the norm rules none of them out.",
                        report_.model.vocabulary->final_norm)};
  }

  HeadlineText operator()(const analysis::FindingIndex& found) const {
    const analysis::Finding& finding = report_.findings[found.finding];
    return std::visit(HeadlineWords(report_, finding.norm), finding.property);
  }

  /// No headline states findings of other kinds.
  template <typename Other>
  HeadlineText operator()(const Other& /*found*/) const {
    return {};
  }

 private:
  [[nodiscard]] const analysis::NormReport& norm() const { return report_.norms[*norm_]; }
  [[nodiscard]] const std::string& name() const { return norm().norm.name; }

  /// " before its bias" for a norm that has one.
  static const char* before_bias(const models::Norm& norm) { return norm.bias ? " before its bias" : ""; }

  /// "query, key and value of layer 3"; empty where not all readers are known.
  static std::string readers_of(const models::Norm& norm) {
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

  [[nodiscard]] HeadlineText longest_axis(std::size_t index) const {
    const analysis::NormReport& norm = report_.norms[index];
    const double ratio = norm.image->top_axes[0].ratio_to_median;
    const std::string readers = readers_of(norm.norm);
    return {times(ratio), fmt::format("longest over median axis of {}", norm.norm.name),
            fmt::format(
                "With one int8 scale for the outputs of {}{}{}, the median axis uses {} of the 127 steps "
                "that the longest uses.",
                norm.norm.name, before_bias(norm.norm),
                readers.empty() ? "" : fmt::format(" (read by {})", readers), format_number(127.0 / ratio))};
  }

  /// The token that uses a coordinate of the norm's stream most, as a sentence; empty where no embedding was
  /// read.
  [[nodiscard]] std::string embedding_sentence(std::size_t coordinate) const {
    for (const analysis::UnusualFeature& feature : report_.features) {
      if (feature.coordinate != coordinate || !feature.embedding || feature.embedding->rows.empty()) continue;
      if (std::find(feature.norms.begin(), feature.norms.end(), *norm_) == feature.norms.end()) continue;
      const analysis::EmbeddingRow& row = feature.embedding->rows.front();
      return fmt::format(
          " In the token embedding its mean square is {} times that of a coordinate, and it is {} "
          "of the squared length of the row of {}.",
          format_number(feature.embedding->over_mean), percent(row.share),
          row.name.empty() ? fmt::format("token {}", row.token)
                           : fmt::format("token {} \"{}\"", row.token, row.name));
    }
    return "";
  }

  const analysis::Report& report_;
  std::optional<std::size_t> norm_;
};

}  // namespace

HeadlineText describe(const analysis::Headline& headline, const analysis::Report& report) {
  HeadlineText text = std::visit(HeadlineWords(report, {}), headline.statement);
  text.topic = headline.topic;
  if (const auto* const stated = std::get_if<analysis::FindingIndex>(&headline.statement)) {
    text.finding = stated->finding;
    text.norm = report.findings[stated->finding].norm;
  } else if (const auto* const axis = std::get_if<analysis::LongestAxis>(&headline.statement)) {
    text.norm = axis->norm;
  }
  return text;
}

}  // namespace normscope::results
