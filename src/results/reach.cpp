#include <normscope/results/documents.hpp>

#include <algorithm>
#include <span>

#include <normscope/core/version.hpp>

namespace normscope::results {

using proof::Answer;
using selectability::Probability;
using selectability::Survey;
using selectability::TokenReach;
using Json = nlohmann::ordered_json;

namespace {

/// Number of nearest tokens that are listed at least.
constexpr std::size_t least_nearest = 20;

Json weights_json(const std::vector<proof::PointWeight>& shares) {
  Json list = Json::array();
  for (const proof::PointWeight& share : shares)
    list.push_back({{"token", share.id}, {"weight", share.weight}});
  return list;
}

Json name_json(const std::vector<std::string>& names, std::size_t token) {
  return token < names.size() ? Json(names[token]) : Json();
}

Json left_out_json(const Survey::LeftOut& left) {
  return {{"tokens", left.tokens}, {"leads", left.leads}, {"probabilities", left.probabilities}};
}

/// Number of values in all points of certificates.
std::size_t numbers_of(const Survey& results) {
  std::size_t numbers = 0;
  for (const TokenReach& token : results.tokens) {
    numbers += token.witness.size() + token.unbounded_witness.size();
  }
  for (const Probability& probability : results.probabilities) {
    numbers += probability.point.size() + probability.tangent.size();
  }
  return numbers;
}

/// A result and the form in which it is written.
class ReachDocument {
 public:
  ReachDocument(const selectability::VocabularyHead& head, const Survey& results, const ReachDetails& details)
      : names_(details.names),
        results_(results),
        cone_(selectability::without_ball(head.logits, details.tolerance)),
        here_(numbers_of(results) <= most_inline_numbers) {}

  [[nodiscard]] bool here() const { return here_; }
  [[nodiscard]] Json without_ball() const { return {{"stretch", cone_.stretch}, {"tie", cone_.tie}}; }

  [[nodiscard]] Json losers(Answer answer) const {
    Json list = Json::array();
    for (const std::size_t i : results_.with(answer)) {
      const TokenReach& token = results_.tokens[i];
      list.push_back({{"token", i},
                      {"name", name_json(names_, i)},
                      {"lead_at_most", token.upper},
                      {"weights", weights_json(selectability::upper_weights(token))},
                      {"without_ball", std::string(to_string(token.unbounded))},
                      {"without_ball_weights", weights_json(token.unbounded_weights)}});
      if (token.unbounded == Answer::yes) list.back()["without_ball_witness"] = far_witness(token);
      // Only with eps = 0.
      if (token.only_inside) list.back()["only_inside"] = true;
    }
    return list;
  }

  [[nodiscard]] Json nearest() const {
    Json list = Json::array();
    for (const std::size_t i : results_.nearest(std::max(least_nearest, results_.wanted))) {
      list.push_back({{"token", i},
                      {"name", name_json(names_, i)},
                      {"lead_at_least", results_.tokens[i].lower},
                      {"lead_at_most", results_.tokens[i].upper}});
    }
    return list;
  }

  /// The certificate of each token's answer and bounds, except for what is in `losers`.
  [[nodiscard]] Json proofs() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < results_.tokens.size(); ++i) {
      const TokenReach& token = results_.tokens[i];
      Json proof = {{"answer", token.done ? std::string(to_string(token.answer)) : "open"}};
      if (token.done && token.answer == Answer::yes) {
        if (results_.tokens.size() > 1) {
          proof["witness"] = token.witness.empty() ? Json("own_direction") : point(token.witness);
        }
        proof["weights"] = weights_json(selectability::upper_weights(token));
      }
      const Probability& probability = results_.probabilities[i];
      if (!probability.point.empty()) proof["probability_point"] = point(probability.point);
      if (!probability.weights.empty()) proof["probability_weights"] = weights_json(probability.weights);
      const std::span<const double> tangent = probability.proving_tangent();
      if (!tangent.empty()) proof["probability_tangent"] = point(tangent);
      list.push_back(std::move(proof));
    }
    return list;
  }

 private:
  [[nodiscard]] Json point(std::span<const double> values) const {
    return here_ ? Json(values) : Json("elsewhere");
  }
  [[nodiscard]] Json far_witness(const TokenReach& token) const {
    if (!here_) return "elsewhere";
    const std::vector<double>& cone = token.unbounded_witness;
    // A token that leads inside the ball also leads without it.
    if (cone.empty()) return {{"point", token.witness}, {"height", 1.0}};
    return {{"point", std::vector<double>(cone.begin(), cone.end() - 1)},
            {"height", cone_.stretch * cone.back()}};
  }

  const std::vector<std::string>& names_;
  const Survey& results_;
  selectability::WithoutBall cone_;
  bool here_;
};

}  // namespace

Json reach(const selectability::VocabularyHead& head, const Survey& results, const ReachDetails& details) {
  const ReachDocument document(head, results, details);
  const Survey::LeftOut& left = results.left_out;
  Json lead = {{"lower", Json::array()}, {"upper", Json::array()}};
  Json probability = {{"lower", Json::array()}, {"upper", Json::array()}, {"refined", results.refined}};
  std::size_t decided = 0;
  for (std::size_t i = 0; i < results.tokens.size(); ++i) {
    decided += results.tokens[i].done ? 1 : 0;
    // A bound is stated only with the point or the weights that prove it.
    const TokenReach& token = results.tokens[i];
    const bool leads = token.done && token.answer == Answer::yes;
    lead["lower"].push_back(leads ? Json(token.lower) : Json());
    lead["upper"].push_back(token.done ? Json(token.upper) : Json());
    const Probability& found = results.probabilities[i];
    const bool has_upper = token.done || !found.weights.empty() || !found.tangent.empty();
    probability["lower"].push_back(leads || !found.point.empty() ? found.lower : 0.0);
    probability["upper"].push_back(has_upper ? found.upper : 1.0);
  }
  return {{"schema", "normscope.reach/1"},
          {"version", version},
          {"source", details.source},
          {"inputs", inputs(details.inputs)},
          {"tokens", head.logits.tokens},
          {"width", head.logits.width},
          {"norm",
           {{"name", head.norm_name.empty() ? Json() : Json(head.norm_name)},
            {"kind", std::string(to_string(head.norm.kind))},
            {"eps", head.norm.eps}}},
          {"unembedding_bias", head.has_bias},
          {"tied", head.tied},
          {"logit_scale", head.logit_scale},
          {"soft_cap", head.soft_cap},
          {"notes", details.notes},
          {"complete", details.complete && left.nothing()},
          {"left_out", left_out_json(left)},
          {"decided", decided},
          {"reachable", results.with(Answer::yes).size()},
          {"unreachable", document.losers(Answer::no)},
          {"undecided", document.losers(Answer::undecided)},
          {"unreachable_without_ball", results.unargmaxable()},
          {"nearest", document.nearest()},
          {"lead", lead},
          {"max_probability", probability},
          {"scale", head.logits.scale},
          {"tolerance", details.tolerance},
          {"sphere", head.logits.sphere},
          {"tie", head.logits.tolerance(details.tolerance)},
          {"without_ball", document.without_ball()},
          {"proofs", document.proofs()},
          {"certificates", certificates(document.here(), details.folder)}};
}

}  // namespace normscope::results
