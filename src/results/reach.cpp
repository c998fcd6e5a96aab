#include <normscope/results/documents.hpp>

#include <algorithm>
#include <span>

#include "shared.hpp"

namespace normscope::results {

using proof::Answer;
using selectability::Probability;
using selectability::Survey;
using selectability::TokenReach;

namespace {

/// Number of nearest tokens that are listed at least.
constexpr std::size_t least_nearest = 20;

constexpr const char* about_name = "as the vocabulary spells it; null without one";

auto weights_on_tokens(const std::vector<proof::PointWeight>& weights) {
  return each(weights, [](const proof::PointWeight& weight) {
    return object([&weight](auto& v) {
      v("token", weight.id);
      v("weight", not_negative(weight.weight));
    });
  });
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

}  // namespace

struct ReachFields {
  const selectability::VocabularyHead& head;
  const Survey& results;
  const ReachDetails& details;
  selectability::WithoutBall cone{};
  bool here = true;  ///< whether points are in the result

  /// As the vocabulary spells it, or null.
  [[nodiscard]] auto name(std::size_t token) const {
    const bool named = token < details.names.size();
    return nullable(named, named ? details.names[token] : std::string());
  }
  /// A point of the ball where points are here.
  [[nodiscard]] auto point(std::span<const double> values, bool own_direction = false) const {
    return either(own_direction || !here,
                  one_of<"own_direction", "elsewhere">(own_direction ? "own_direction" : "elsewhere"),
                  std::span<const double>(values));
  }
};

/// A point at which a token leads although nothing bounds hidden states.
struct FarWitness {
  const ReachFields& of;
  const TokenReach& token;
};

template <class V>
void fields(V& v, const FarWitness& x) {
  const std::vector<double>& cone = x.token.unbounded_witness;
  // A token that leads inside the ball also leads without it.
  v("point", cone.empty() ? x.token.witness : std::vector<double>(cone.begin(), cone.end() - 1),
    "as long as the width");
  v("height", above_zero(cone.empty() ? 1.0 : x.of.cone.stretch * cone.back()));
}

/// A token that is not known to be reachable.
struct LostToken {
  const ReachFields& of;
  std::size_t token;
  const TokenReach& reach;
  bool undecided;  ///< whether it stands among the undecided
};

template <class V>
void fields(V& v, const LostToken& x) {
  v("token", x.token);
  v("name", x.of.name(x.token), about_name);
  v("lead_at_most", finite_or_null(x.reach.upper),
    "proved: nowhere in the ball does its logit lead all others by more");
  v("weights", weights_on_tokens(selectability::upper_weights(x.reach)),
    "on other tokens: |sum w_j (A_i - A_j)| + sum w_j (a_i - a_j), over sum w_j, is at most lead_at_most");
  v("without_ball", x.reach.unbounded,
    "whether it can win when the norm's bound on the hidden state is ignored");
  v("without_ball_weights", weights_on_tokens(x.reach.unbounded_weights),
    "on other tokens: sum w_j (A_i - A_j) = 0 and sum w_j (a_i - a_j) <= 0 to the tolerance; the token "
    "numbered `tokens` stands for the latter's slack; empty unless without_ball is no");
  v.maybe(x.reach.unbounded == Answer::yes, "without_ball_witness",
          either(!x.of.here, constant("elsewhere"), FarWitness{x.of, x.reach}),
          "where without_ball is yes: a point and a height > 0 with (A_i - A_j) . point + height (a_i - "
          "a_j) > 0 for every other token; elsewhere where points are not here");
  if (!x.undecided) return;
  // Only with eps = 0.
  v.maybe(x.reach.only_inside, "only_inside", constant(true),
          "inside the ball the token leads somewhere; eps = 0 leaves the inside out, and on the sphere "
          "no such point was found");
}

/// The certificate of a token's answer and bounds, except for what is among the unreachable and undecided.
struct TokenProof {
  const ReachFields& of;
  const TokenReach& reach;
  const Probability& probability;
};

template <class V>
void fields(V& v, const TokenProof& x) {
  const bool reached = x.reach.done && x.reach.answer == Answer::yes;
  const std::span<const double> tangent = x.probability.proving_tangent();
  v("answer", one_of<"yes", "no", "undecided", "open">(x.reach.done ? to_string(x.reach.answer) : "open"),
    "whether it is reachable; open where the command was interrupted before");
  v.maybe(reached && x.of.results.tokens.size() > 1, "witness",
          x.of.point(x.reach.witness, x.reach.witness.empty()),
          "reachable: a point of the ball at which it leads by lead.lower; own_direction: A_i over its "
          "length, the mean of all rows taken out");
  v.maybe(reached, "weights", weights_on_tokens(selectability::upper_weights(x.reach)),
          "reachable: on other tokens, they prove lead.upper; for others they are among unreachable and "
          "undecided");
  v.maybe(!x.probability.point.empty(), "probability_point", x.of.point(x.probability.point),
          "where it has max_probability.lower; absent where its lead says so");
  v.maybe(!x.probability.weights.empty(), "probability_weights",
          each(x.probability.weights,
               [](const proof::PointWeight& weight) {
                 return object([&weight](auto& part) {
                   part("token", weight.id);
                   part("weight", above_zero(weight.weight));
                 });
               }),
          "in place of probability_tangent where logits are so large that rounding decides the "
          "probabilities at a point: probabilities that prove max_probability.upper");
  v.maybe(!tangent.empty(), "probability_tangent", x.of.point(tangent),
          "whose probabilities prove max_probability.upper; absent where its lead does");
}

template <class V>
void fields(V& v, const Survey::LeftOut& left) {
  v("tokens", left.tokens, "tokens that were not decided");
  v("leads", left.leads,
    "tokens not in `nearest` whose largest lead might be smaller than that of some that are");
  v("probabilities", left.probabilities,
    "tokens whose largest probability was requested, but is bounded by their leads alone");
}

template <class V>
void fields(V& v, const ReachFields& x) {
  const selectability::VocabularyHead& head = x.head;
  const Survey& results = x.results;
  const auto reach_of = [&](std::size_t token) -> const TokenReach& {
    return token < results.tokens.size() ? results.tokens[token] : empty<TokenReach>();
  };
  const auto lost = [&](Answer answer) {
    return each(results.with(answer), [&x, reach_of, answer](std::size_t token) {
      return LostToken{x, token, reach_of(token), answer == Answer::undecided};
    });
  };
  std::vector<std::optional<double>> lower;
  std::vector<std::optional<double>> upper;
  std::vector<double> least_probability;
  std::vector<double> most_probability;
  std::vector<std::size_t> every;
  std::size_t decided = 0;
  const auto finite = [](bool there, double bound) {
    return there && std::isfinite(bound) ? std::optional(bound) : std::nullopt;
  };
  for (std::size_t i = 0; i < results.tokens.size(); ++i) {
    decided += results.tokens[i].done ? 1 : 0;
    // A bound is stated only with the point or the weights that prove it.
    const TokenReach& token = results.tokens[i];
    const bool leads = token.done && token.answer == Answer::yes;
    lower.push_back(finite(leads, token.lower));
    upper.push_back(finite(token.done, token.upper));
    const Probability& found = results.probabilities[i];
    const bool has_upper = token.done || !found.weights.empty() || !found.tangent.empty();
    least_probability.push_back(leads || !found.point.empty() ? found.lower : 0.0);
    most_probability.push_back(has_upper ? found.upper : 1.0);
    every.push_back(i);
  }
  const auto fractions = [](const std::vector<double>& list) {
    return each(list, [](double part) { return fraction(part); });
  };
  begin(v, "reach");
  v("source", x.details.source, "the model, or the array of the unembedding");
  v("inputs", InputsFields{x.details.inputs}, "what this was computed from");
  v("tokens", positive(head.logits.tokens));
  v("width", positive(head.logits.width));
  v("norm", object([&](auto& norm) {
      norm("name", text_or_null(head.norm_name));
      norm("kind", DividingKind{head.norm.kind});
      norm("eps", not_negative(head.norm.eps));
    }));
  v("unembedding_bias", head.has_bias);
  v("tied", head.tied, "whether the unembedding is the token embedding's table");
  v("logit_scale", head.logit_scale,
    "what the configuration multiplies logits by; in leads and scale already");
  v("soft_cap", not_negative(head.soft_cap),
    "C of C tanh(logit/C), 0 without one; leads and scale are of logits before the cap, probabilities "
    "after it");
  v("notes", x.details.notes, "what the model's description had to assume, or could not tell");
  v("complete", x.details.complete && results.left_out.nothing(),
    "false where the command was interrupted, or left something out: see left_out");
  v("left_out", results.left_out, "what --budget, or the work allowed for leads, did not suffice for");
  v("decided", decided, "tokens that were looked at until an answer or the limit of rounds");
  v("reachable", results.with(Answer::yes).size());
  v("unreachable", lost(Answer::no));
  v("undecided", lost(Answer::undecided));
  v("unreachable_without_ball", results.unargmaxable(),
    "tokens that can never win whatever the hidden state");
  v("nearest",
    each(results.nearest(std::max(least_nearest, results.wanted)),
         [&](std::size_t token) {
           return object([&x, token, &reach = reach_of(token)](auto& near) {
             near("token", token);
             near("name", x.name(token), about_name);
             near("lead_at_least", finite_or_null(reach.lower),
                  "proved: somewhere in the ball its logit leads all others by this");
             near("lead_at_most", finite_or_null(reach.upper), "proved: nowhere by more");
           });
         }),
    "reachable tokens whose largest leads were worked out, the least first: those with the smallest "
    "there are, as many as --sharpen says, unless left_out.leads names others");
  v("lead", object([&](auto& lead) {
      lead("lower", lower);
      lead("upper", upper);
    }),
    "for every token bounds, proved, of the most its logit can lead all others by; null is infinite, and "
    "where the result has no point or weights that prove a bound");
  v("max_probability", object([&](auto& probability) {
      probability("lower", fractions(least_probability));
      probability("upper", fractions(most_probability));
      probability("refined", results.refined,
                  "tokens whose bounds were worked out; the others' are read off their leads");
    }),
    "for every token bounds, proved, of the largest probability it can get");
  v("scale", not_negative(head.logits.scale),
    "largest length of a row of A plus size of its offset, means of all tokens taken out");
  v("tolerance", fraction(x.details.tolerance),
    "of unreachable tokens the lead is at most tolerance * scale, or rounding; reachable ones may lead by "
    "less");
  v("sphere", head.logits.sphere,
    "eps = 0: the norm gives |u| = 1 only; bounds from above are those of the ball all the same");
  v("tie", not_negative(head.logits.tolerance(x.details.tolerance)),
    "a lead no larger than this is none: tolerance * scale, or eight times what rounding may do to a "
    "logit where that is more");
  v("without_ball", object([&](auto& without) {
      without("stretch", above_zero(x.cone.stretch), "power of two that brings offsets to the size of rows");
      without("tie", not_negative(x.cone.tie), "what counts as nothing among rows (A, stretch a)");
    }),
    "how answers without the ball are measured");
  v("proofs",
    each(every,
         [&](std::size_t token) {
           return TokenProof{
               x, reach_of(token),
               token < results.probabilities.size() ? results.probabilities[token] : empty<Probability>()};
         }),
    "of each token what proves its answer and bounds; docs/certificates.md says how each is checked");
  v("certificates", certificates(x.here, x.details.folder),
    "where queries, weights and points are: here, in the folder of --certificates, or nowhere, as there "
    "are more than a million numbers of them");
}

Json reach(const selectability::VocabularyHead& head, const Survey& results, const ReachDetails& details) {
  return json_of(ReachFields{head, results, details,
                             selectability::without_ball(head.logits, details.tolerance),
                             numbers_of(results) <= most_inline_numbers});
}
Json describe_reach(SchemaMaker& maker) {
  return maker.schema_of(ReachFields{{}, {}, {.source = {}, .names = {}, .notes = {}, .inputs = {}}});
}

}  // namespace normscope::results
