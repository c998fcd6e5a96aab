#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/text.hpp>
#include <normscope/verify/verify.hpp>

#include "document.hpp"
#include "leads.hpp"
#include "token_claims.hpp"
#include "tokens.hpp"

namespace normscope::verify {
namespace {

/// A lead of less is none, however little products underflow.
constexpr double positive = std::numeric_limits<double>::denorm_min();

std::string place(const char* list, std::size_t index) { return fmt::format("{}[{}]", list, index); }

std::string without_ball(std::size_t index) { return fmt::format("without_ball of token {}", index); }

class ReachCheck {
 public:
  ReachCheck(const Result& result, const VocabularyHead& head, const Folder* folder,
             const VerifyOptions& options)
      : root_(result.fields().root()),
        head_(head),
        facts_(head.facts),
        source_(result.argument("model") + result.argument("unembedding")),
        has_bias_(!head.bias.empty()),
        kind_(head.norm.kind),
        eps_(head.norm.eps),
        factor_(head.scale),
        options_(options) {
    if (root_["tokens"].count() != head_.tokens() || root_["width"].count() != head_.width()) {
      throw Error(ErrorCode::Shape,
                  fmt::format("{}: is of {} tokens of width {}, expected those of the inputs, {} of {}",
                              result.source(), root_["tokens"].count(), root_["width"].count(),
                              head_.tokens(), head_.width()));
    }
    tokens_ = read_token_claims(root_, folder, head_.tokens(), head_.width());
    lower_.assign(tokens_.size(), -infinity);
    upper_.assign(tokens_.size(), infinity);
    tie_ = scaled(root_["tie"]);
  }

  Verification run() {
    check_facts();
    check_counts();
    check_sizes();
    check_reachable();
    check_upper_ends();
    check_without_ball();
    check_nearest();
    check_probabilities();
    check_refined();
    return std::move(found_);
  }

 private:
  [[nodiscard]] double scaled(const Field& field) const { return head_.in_units(field.number()); }

  void missing(const std::string& item, const char* what) {
    found_.not_checkable.push_back(
        {item, fmt::format("its {} is not in the result; make it with certificates", what)});
  }

  void check_counts() {
    std::vector<std::size_t> count(4, 0);
    std::size_t without = 0;
    for (const TokenClaims& claims : tokens_) {
      ++count[static_cast<std::size_t>(claims.answer)];
      without += claims.without_ball == Answer::no ? 1 : 0;
    }
    const std::size_t open = count[static_cast<std::size_t>(Answer::open)];
    found_.check(root_["reachable"].count() == count[static_cast<std::size_t>(Answer::yes)] &&
                     root_["unreachable_without_ball"].count() == without &&
                     root_["decided"].count() == head_.tokens() - open,
                 "proofs, reachable, unreachable_without_ball, decided", "are not those of the tokens");
    const Field left = root_["left_out"];
    found_.check(left["tokens"].count() == open, "left_out.tokens", "is not the number of open tokens");
    found_.check(!root_["complete"].flag() ||
                     (open == 0 && left["leads"].count() == 0 && left["probabilities"].count() == 0),
                 "complete", "is true, but something is left out");
    if (open > 0) {
      found_.not_checkable.push_back(
          {counted(open, "token"), "undecided: the result states nothing about them"});
    }
  }

  /// What the description of the model says, and where names of tokens come from.
  void check_facts() {
    const auto equal_or_list = [&](bool known, bool holds, const char* item) {
      if (known) {
        found_.check(holds, item, "is not that of the inputs");
      } else {
        found_.not_checkable.push_back({item, "is not read from these inputs"});
      }
    };
    found_.check(root_["unembedding_bias"].flag() == has_bias_, "unembedding_bias",
                 "is not that of the inputs");
    found_.check(root_["tied"].flag() == facts_.tied, "tied", "is not that of the inputs");
    const Field name = root_["norm"]["name"];
    equal_or_list(facts_.norm_name.has_value() || name.is_null(),
                  (name.is_null() ? "" : name.text()) == facts_.norm_name.value_or(""), "norm.name");
    std::vector<std::string> notes;
    for (std::size_t i = 0; i < root_["notes"].size(); ++i) notes.push_back(root_["notes"][i].text());
    found_.check(notes == facts_.notes, "notes", "are not those of the model's description");
    bool named = false;
    bool same = true;
    for (const char* list : {"unreachable", "undecided", "nearest"}) {
      const Field entries = root_[list];
      for (std::size_t i = 0; i < entries.size(); ++i) {
        const Field entry = entries[i]["name"];
        if (entry.is_null()) continue;
        const std::size_t index = entries[i]["token"].index(head_.tokens());
        named = true;
        same = same && index < facts_.names.size() && facts_.names[index] == entry.text();
      }
    }
    if (named && !same) {
      found_.not_checkable.push_back({"name", "names of tokens are not those of a file beside the model"});
    }
    found_.check(root_["source"].text() == source_, "source", "is not the name of the model or unembedding");
  }

  /// The nearest tokens: the reachable ones of the least leads.
  void check_nearest() {
    const Field nearest = root_["nearest"];
    std::vector<bool> listed(tokens_.size());
    double last = -infinity;
    for (std::size_t i = 0; i < nearest.size(); ++i) {
      const Field entry = nearest[i];
      const std::size_t index = entry["token"].index(tokens_.size());
      const TokenClaims& claims = tokens_[index];
      found_.check(entry["lead_at_least"].number_or(infinity) == claims.lower &&
                       entry["lead_at_most"].number_or(infinity) == claims.upper,
                   entry.place(), "states other leads than the token's");
      found_.check(claims.answer == Answer::yes && !listed[index] && claims.upper >= last, entry.place(),
                   "is not a reachable token, is listed twice or is not in the order of leads");
      listed[index] = true;
      last = claims.upper;
    }
    std::size_t others = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].answer == Answer::yes && !listed[i] && lower_[i] < last) ++others;
    }
    if (others > root_["left_out"]["leads"].count()) {
      found_.not_checkable.push_back(
          {"nearest", fmt::format("of {} the result does not prove that their largest leads are larger",
                                  counted(others, "other token"))});
    }
  }

  void check_refined() {
    // Tokens whose probabilities were worked out: the others state nothing but what their leads prove.
    const std::vector<std::size_t> refined = root_["max_probability"]["refined"].indices(tokens_.size());
    const std::vector<bool> is_refined = [&] {
      std::vector<bool> result(tokens_.size());
      for (const std::size_t token : refined) result[token] = true;
      return result;
    }();
    bool beside = false;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const TokenClaims& claims = tokens_[i];
      const bool worked =
          claims.point != Point::none || claims.tangent != Point::none || !claims.probability_weights.empty();
      beside = beside || (worked && !is_refined[i]);
    }
    found_.check(!beside, "max_probability.refined",
                 "lacks a token whose probability has a point of its own");
  }

  void check_sizes() {
    const auto is_input = [&](bool holds, const char* item) {
      found_.check(holds, item, "is not that of the inputs");
    };
    is_input(root_["norm"]["kind"].text() == std::string(to_string(kind_)), "norm.kind");
    is_input(root_["norm"]["eps"].number() == eps_, "norm.eps");
    is_input(root_["sphere"].flag() == head_.sphere(), "sphere, eps");
    is_input(root_["logit_scale"].number() == factor_, "logit_scale");
    is_input(root_["soft_cap"].number() == head_.soft_cap(), "soft_cap");
    const Head::Sizes sizes = head_.sizes();
    const double rounded = 1e-12 * sizes.terms;
    const double scale = scaled(root_["scale"]);
    // Subtracting the mean of nearly equal rows leaves the rounding of the rows.
    const double left = 16.0 * unit * sizes.stored;
    found_.check(std::abs(scale - sizes.scale) <= 1e-9 * sizes.scale + rounded + left, "scale",
                 "is not the largest |A_j| + |a_j| behind a norm of this norm.kind");
    // Eight times the rounding error of a logit, or the tolerance: see docs/certificates.md.
    const double terms = sizes.terms + left;
    const double allowed = std::max(root_["tolerance"].number() * scale, 512.0 * unit * terms);
    found_.check(tie_ >= 0.0 && tie_ <= allowed * (1.0 + 1e-9), "tie", "is more than the tolerance allows");
    stretch_ = root_["without_ball"]["stretch"].number();
    cone_tie_ = scaled(root_["without_ball"]["tie"]);
    const bool flat = sizes.longest <= rounded + left || sizes.highest <= rounded;
    const double ratio = flat ? 1.0 : sizes.longest / sizes.highest;
    found_.check(flat || (stretch_ >= 0.25 * ratio && stretch_ <= 4.0 * ratio), "without_ball.stretch",
                 "does not scale offsets to the size of the rows");
    const double cone_scale = sizes.longest + stretch_ * sizes.highest;
    const double larger = std::max(1.0, stretch_);
    const double cone_allowed =
        std::max(root_["tolerance"].number() * (cone_scale + left * larger), 512.0 * unit * terms * larger);
    found_.check(cone_tie_ >= 0.0 && cone_tie_ <= cone_allowed * (1.0 + 1e-9) + rounded * 1e-9,
                 "without_ball.tie", "is more than the tolerance allows");
  }

  void check_reachable() {
    std::vector<OwnLead> own;
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const TokenClaims& stated = tokens_[i];
      if (stated.answer != Answer::yes) {
        if (std::isfinite(stated.lower)) {
          found_.not_checkable.push_back(
              {fmt::format("lead.lower[{}]", i), "the result has no point at which the token leads so"});
        }
        continue;
      }
      if (head_.tokens() == 1) {
        lower_[i] = infinity;
        continue;
      }
      if (stated.witness == Point::omitted) {
        missing(place("lead.lower", i), "witness");
        continue;
      }
      if (!in_ball(witness(i)) || !(stated.lower > 0.0) || !std::isfinite(stated.lower)) {
        found_.check(false, place("lead.lower", i),
                     "its witness lies outside the ball, or its lead is not positive");
        continue;
      }
      if (stated.witness == Point::own_direction && !head_.sphere()) {
        own.push_back({i, least_lead(i)});
      } else {
        others.push_back(i);
      }
    }
    check_own_directions(own, others);
    // The claims of some tokens at a time, since each has a direction in twice the precision.
    const std::size_t at_once = std::max<std::size_t>(128, (std::size_t{1} << 22U) / head_.width());
    for (std::size_t begin = 0; begin < others.size(); begin += at_once) {
      check_witnesses(std::span(others).subspan(begin, std::min(at_once, others.size() - begin)));
    }
  }

  [[nodiscard]] std::vector<double> witness(std::size_t index) const {
    const TokenClaims& stated = tokens_[index];
    return stated.witness == Point::own_direction ? head_.own_direction(index) : stated.witness_point;
  }

  [[nodiscard]] double least_lead(std::size_t index) const {
    return std::max(positive, up(head_.in_units(tokens_[index].lower)));
  }

  /// Adds to `others` those tokens whose leads one product of each two tokens leaves open over many others.
  void check_own_directions(const std::vector<OwnLead>& own, std::vector<std::size_t>& others) {
    const std::vector<OpenRivals> rivals = open_rivals(head_, own, options_.threads, options_.progress);
    std::vector<char> holds(own.size());
    parallel_for(own.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        if (rivals[k].all) continue;
        holds[k] = 1;
        if (rivals[k].tokens.empty()) continue;
        const std::size_t index = own[k].token;
        const std::vector<double> u = witness(index);
        holds[k] = is_proved_lead(head_.rows(), head_.claim(index, u, own[k].least), rivals[k].tokens,
                                  [&](std::size_t other) { return leads_at_witness(index, other, u); });
      }
    });
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (rivals[k].all) {
        others.push_back(own[k].token);
      } else {
        note_lead(own[k].token, holds[k] != 0);
      }
    }
  }

  void check_witnesses(std::span<const std::size_t> some) {
    std::vector<LeadClaim> claims;
    std::vector<std::vector<double>> points;
    for (const std::size_t index : some) {
      points.push_back(witness(index));
      claims.push_back(head_.claim(index, points.back(), least_lead(index)));
    }
    const auto decide = [&](std::size_t claim, std::size_t other) {
      return leads_at_witness(claims[claim].index, other, points[claim]);
    };
    const std::vector<char> holds =
        proved_leads(head_.rows(), claims, decide, options_.threads, options_.progress);
    for (std::size_t k = 0; k < some.size(); ++k) note_lead(some[k], holds[k] != 0);
  }

  [[nodiscard]] bool leads_at_witness(std::size_t index, std::size_t other,
                                      const std::vector<double>& u) const {
    return head_.leads_by(index, other, u, 1.0, Head::Where::norm, tokens_[index].lower);
  }

  void note_lead(std::size_t index, bool holds) {
    found_.check(holds, place("lead.lower", index),
                 "leads by less than stated at its witness in proofs, a point of the ball or, with eps 0, of "
                 "the sphere");
    if (holds) lower_[index] = tokens_[index].lower;
  }

  void check_upper_ends() {
    if (head_.tokens() == 1) {
      found_.check(!std::isfinite(tokens_[0].upper), "lead.upper", "of the only token is finite");
      return;
    }
    std::vector<char> holds_upper(tokens_.size());
    parallel_for(tokens_.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const TokenClaims& stated = tokens_[i];
        if (!std::isfinite(stated.upper)) continue;
        holds_upper[i] = holds_by_weights(i);
      }
    });
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const TokenClaims& stated = tokens_[i];
      if (std::isfinite(stated.upper)) {
        const bool holds = holds_upper[i] != 0;
        if (!holds && stated.answer == Answer::open) {
          found_.not_checkable.push_back(
              {fmt::format("lead.upper[{}]", i), "the result has no weights that prove it"});
        } else {
          found_.check(holds, place("lead.upper", i), "its weights do not bound its lead as stated");
        }
        if (holds) upper_[i] = stated.upper;
      }
      if (stated.answer == Answer::no) {
        found_.check(is_tie(i), place("proofs", i),
                     "is stated to be unreachable, but the bound of its lead exceeds a tie");
      }
      if (stated.answer == Answer::undecided) {
        found_.not_checkable.push_back(
            {place("proofs", i), "undecided: only what its lead is at most is stated"});
      }
    }
  }

  /// Whether the token leads by no more than a tie with the tokens of its proof.
  [[nodiscard]] bool is_tie(std::size_t index) const {
    const TokenClaims& stated = tokens_[index];
    const double upper = head_.in_units(stated.upper);
    return upper <= tie_ && upper <= own_tie(index, stated.weights);
  }

  /// The tie threshold by the size of the rows with weights alone.
  [[nodiscard]] double own_tie(std::size_t index, const std::vector<Weight>& weights) const {
    double total = 0.0;
    double size = 0.0;
    double terms = 0.0;
    for (const Weight& weight : weights) {
      const Head::Own own = head_.own(weight.index);
      total += weight.weight;
      size += weight.weight * own.size;
      terms += weight.weight * own.terms;
    }
    if (!(total > 0.0)) return 0.0;
    return (1.0 + 1e-9) * std::max(root_["tolerance"].number() * size / total,
                                   256.0 * unit * (terms / total + head_.own(index).terms));
  }

  /// Whether no lead of the token exceeds the stated upper end, by its weights.
  [[nodiscard]] bool holds_by_weights(std::size_t index) const {
    const TokenClaims& stated = tokens_[index];
    const std::optional<Enclosure> total = total_of(stated.weights, index);
    if (!total) return false;
    const Head::Difference difference = head_.difference(index, stated.weights);
    const double sum = difference.length + difference.offset.high();
    const double highest =
        sum / (sum > 0.0 ? total->low() : total->high()) +
        8.0 * unit * (difference.length + std::abs(difference.offset.high())) / total->low() + positive;
    return highest <= below(head_.in_units(stated.upper)) ||
           head_.is_lead_at_most(index, stated.weights, stated.upper);
  }

  /// A bound below a number that was rounded once or twice.
  static double below(double value) { return value - 4.0 * unit * std::abs(value); }

  void check_without_ball() {
    std::vector<LeadClaim> claims;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const TokenClaims& stated = tokens_[i];
      if (stated.answer == Answer::open || stated.answer == Answer::yes) continue;
      if (stated.without_ball == Answer::yes) {
        if (stated.far_witness == Point::omitted) {
          missing(without_ball(i), "witness without the ball");
        } else {
          const bool forward = stated.far_height > 0.0;
          claims.push_back(head_.far_claim(i, stated.far_point, forward ? stated.far_height : 1.0,
                                           forward ? positive : infinity));
        }
      }
      if (stated.without_ball == Answer::no) check_never(i, stated.far_weights);
    }
    const auto decide = [&](std::size_t claim, std::size_t other) {
      const TokenClaims& stated = tokens_[claims[claim].index];
      return stated.far_height > 0.0 &&
             head_.leads_by(claims[claim].index, other, stated.far_point, stated.far_height,
                            Head::Where::point, std::numeric_limits<double>::denorm_min());
    };
    const std::vector<char> holds =
        proved_leads(head_.rows(), claims, decide, options_.threads, options_.progress);
    for (std::size_t k = 0; k < claims.size(); ++k) {
      found_.check(holds[k] != 0, without_ball(claims[k].index),
                   "does not lead at its witness without the ball");
    }
  }

  /// With weights of sum one: Σ λ_j (A_i − A_j) is zero and Σ λ_j (a_i − a_j) is at most zero. A weight on
  /// the index after the last token compensates a negative value of the latter; it is at most half of the
  /// total.
  void check_never(std::size_t index, std::vector<Weight> weights) {
    weights.erase(std::remove_if(weights.begin(), weights.end(),
                                 [&](const Weight& weight) { return weight.index == tokens_.size(); }),
                  weights.end());
    const std::optional<Enclosure> total = total_of(weights, index);
    double size = infinity;
    if (total) {
      const Head::Difference difference = head_.difference(index, weights);
      const double beyond = std::max(0.0, stretch_ * difference.offset.high());
      size = up(std::hypot(difference.length, beyond) / total->low());
    }
    found_.check(size <= 3.0 * cone_tie_ * (1.0 + 1e-9), without_ball(index),
                 "its weights without the ball do not cancel as stated");
  }

  void check_probabilities() {
    std::vector<std::optional<Ends>> bounds(tokens_.size());
    parallel_for(tokens_.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const TokenClaims& stated = tokens_[i];
        if (stated.point == Point::omitted || stated.tangent == Point::omitted) continue;
        bounds[i] = head_.soft_cap() > 0.0 ? capped_probability(i) : probability(i);
      }
    });
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (!bounds[i]) {
        missing(place("max_probability", i), "points of probability");
        continue;
      }
      found_.check(bounds[i]->lower >= tokens_[i].probability_lower * (1.0 - last_bits),
                   place("max_probability.lower", i),
                   "has a smaller probability at its point than the stated lower bound");
      if (head_.soft_cap() > 0.0) continue;
      found_.check(bounds[i]->upper <= tokens_[i].probability_upper * (1.0 + last_bits),
                   place("max_probability.upper", i),
                   "has a larger bound of its probability than the stated upper bound");
    }
    if (head_.soft_cap() > 0.0) {
      found_.not_checkable.push_back(
          {"max_probability.upper", "behind a soft cap the result proves no upper ends"});
    }
  }

  [[nodiscard]] Ends probability(std::size_t index) const {
    const TokenClaims& stated = tokens_[index];
    Ends bounds = probability_from_leads(lower_[index], upper_[index], head_.tokens());
    if (stated.point == Point::given) {
      bounds.lower = std::max(bounds.lower, probability_at(head_, index, stated.probable_point));
    }
    if (stated.tangent == Point::given) {
      bounds.upper = std::min(bounds.upper, probability_by_tangent(head_, index, stated.tangent_point));
    }
    bounds.upper = std::min(bounds.upper, probability_by_weights(head_, index, stated.probability_weights));
    return bounds;
  }

  /// Behind a soft cap: the probabilities at its stated points, including the point where it leads.
  [[nodiscard]] Ends capped_probability(std::size_t index) const {
    const TokenClaims& stated = tokens_[index];
    Ends bounds{0.0, 1.0};
    if (head_.tokens() == 1) return {1.0, 1.0};
    if (stated.point == Point::given)
      bounds.lower = capped_probability_at(head_, index, stated.probable_point);
    if (stated.witness == Point::given || stated.witness == Point::own_direction) {
      const std::vector<double> witness =
          stated.witness == Point::given ? stated.witness_point : head_.own_direction(index);
      bounds.lower = std::max(bounds.lower, capped_probability_at(head_, index, witness));
    }
    return bounds;
  }

  Field root_;
  Head head_;
  HeadFacts facts_;
  std::string source_;  ///< the name of the input
  bool has_bias_;
  NormKind kind_;
  double eps_;
  double factor_;
  const VerifyOptions& options_;
  std::vector<TokenClaims> tokens_{};
  std::vector<double> lower_{};  ///< of each token's lead, proved
  std::vector<double> upper_{};
  double tie_ = 0.0;
  double cone_tie_ = 0.0;
  double stretch_ = 1.0;
  Verification found_{};
};

}  // namespace

Verification verify_reach(const Result& result, const VocabularyHead& head, const Folder* folder,
                          const VerifyOptions& options) {
  Verification found = ReachCheck(result, head, folder, options).run();
  list_unproved(found, result.fields());
  return found;
}

}  // namespace normscope::verify
