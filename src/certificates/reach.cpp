#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include <normscope/certificates/verify.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/text.hpp>
#include <normscope/numeric/rounding.hpp>
#include <normscope/numeric/sum.hpp>

#include "fields.hpp"
#include "head.hpp"
#include "probability.hpp"
#include "token_claims.hpp"

namespace normscope::certificates {
namespace {

constexpr double positive = std::numeric_limits<double>::min();

std::string token(std::size_t index) { return fmt::format("token {}", index); }

class ReachCheck {
 public:
  ReachCheck(const Result& result, const VocabularyHead& head, const Folder* folder,
             const VerifyOptions& options)
      : root_(result.fields().root()),
        head_(head),
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
    tie_ = scaled(root_["tie"]);
  }

  Verification run() {
    check_counts();
    check_sizes();
    check_reachable();
    check_upper_ends();
    check_without_ball();
    check_probabilities();
    return std::move(found_);
  }

 private:
  [[nodiscard]] double scaled(const Field& field) const { return head_.in_units(field.number()); }

  void missing(std::size_t index, const char* what) {
    found_.not_checkable.push_back(
        {token(index), fmt::format("its {} is not in the result; see reach --certificates", what)});
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
                 "reachable, unreachable_without_ball, decided", "are not those of the tokens");
    if (open > 0) {
      found_.not_checkable.push_back(
          {counted(open, "token"), "undecided: the result states nothing about them"});
    }
    const Field nearest = root_["nearest"];
    for (std::size_t i = 0; i < nearest.size(); ++i) {
      const Field entry = nearest[i];
      const TokenClaims& claims = tokens_[entry["token"].index(tokens_.size())];
      found_.check(entry["lead_at_least"].number_or(infinity) == claims.lower &&
                       entry["lead_at_most"].number_or(infinity) == claims.upper,
                   entry.path(), "states other leads than the token's");
    }
  }

  void check_sizes() {
    found_.check(root_["norm"]["kind"].text() == std::string(to_string(kind_)) &&
                     root_["norm"]["eps"].number() == eps_ && root_["sphere"].flag() == head_.sphere() &&
                     root_["logit_scale"].number() == factor_ &&
                     root_["soft_cap"].number() == head_.soft_cap(),
                 "norm, logit_scale, soft_cap", "are not those of the inputs");
    const Head::Sizes sizes = head_.sizes();
    const double rounded = 1e-12 * sizes.terms;
    const double scale = scaled(root_["scale"]);
    // Subtracting the mean of nearly equal rows leaves the rounding of the rows.
    const double left = 16.0 * unit * sizes.stored;
    found_.check(std::abs(scale - sizes.scale) <= 1e-9 * sizes.scale + rounded + left, "scale",
                 "is not the largest |A_j| + |a_j|");
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
    std::vector<LeadClaim> claims;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const TokenClaims& stated = tokens_[i];
      if (stated.answer != Answer::yes || head_.tokens() == 1) continue;
      if (stated.witness == Point::omitted) {
        missing(i, "witness");
        continue;
      }
      const std::vector<double> u =
          stated.witness == Point::own_direction ? head_.own_direction(i) : stated.witness_point;
      if (!in_ball(u) || !(stated.lower > 0.0)) {
        found_.check(false, token(i), "its witness lies outside the ball, or its lead is not positive");
        continue;
      }
      claims.push_back(head_.claim(i, u, head_.in_units(stated.lower)));
    }
    check_leads(claims, "leads by less than stated at its witness");
  }

  void check_leads(const std::vector<LeadClaim>& claims, const char* reason) {
    const std::vector<double> leads = proved_leads(head_.rows(), claims, options_.threads, options_.progress);
    for (std::size_t k = 0; k < claims.size(); ++k) {
      found_.check(leads[k] >= claims[k].least * (1.0 - last_bits), token(claims[k].index), reason);
    }
  }

  void check_upper_ends() {
    if (head_.tokens() == 1) return;
    std::vector<double> highest(tokens_.size(), infinity);
    parallel_for(tokens_.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) highest[i] = highest_lead(i);
    });
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const TokenClaims& stated = tokens_[i];
      if (stated.answer == Answer::open) continue;
      if (std::isfinite(stated.upper)) {
        const double upper = head_.in_units(stated.upper);
        found_.check(highest[i] <= upper + last_bits * std::abs(upper), token(i),
                     "its weights do not bound its lead as stated");
      }
      if (stated.answer == Answer::no) {
        found_.check(is_tie(i), token(i),
                     "is stated to be unreachable, but the bound of its lead exceeds a tie");
      }
      if (stated.answer == Answer::undecided) {
        found_.not_checkable.push_back({token(i), "undecided: only what its lead is at most is stated"});
      }
    }
  }

  /// Whether the token leads by no more than a tie with the tokens of its proof; at each of two points with
  /// the token that leads there, however large the other is.
  [[nodiscard]] bool is_tie(std::size_t index) const {
    const TokenClaims& stated = tokens_[index];
    const double upper = head_.in_units(stated.upper);
    if (!(upper <= tie_)) return false;
    if (stated.ends.empty()) return upper <= own_tie(index, stated.weights);
    if (!head_.sphere() || head_.dimension() != 1) return false;
    const std::vector<std::vector<double>> points = head_.two_points();
    for (std::size_t end = 0; end < points.size(); ++end) {
      const double most = head_.lead(index, stated.ends[end], points[end]).high();
      if (!(most <= own_tie(index, {{stated.ends[end], 1.0}}))) return false;
    }
    return true;
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

  /// An upper bound of the token's lead, by its weights or its end points.
  [[nodiscard]] double highest_lead(std::size_t index) const {
    const TokenClaims& stated = tokens_[index];
    if (!stated.ends.empty()) {
      if (!head_.sphere() || head_.dimension() != 1) return infinity;
      const std::vector<std::vector<double>> points = head_.two_points();
      double most = -infinity;
      for (std::size_t end = 0; end < points.size(); ++end) {
        if (stated.ends[end] == index) return infinity;
        most = std::max(most, head_.lead(index, stated.ends[end], points[end]).high());
      }
      return most;
    }
    const Total total = total_of(stated.weights, index);
    if (!total.valid) return infinity;
    const Head::Difference difference = head_.difference(index, stated.weights);
    const double sum = difference.length + difference.offset.high();
    return sum / (sum > 0.0 ? total.low : total.high) + 4.0 * unit * difference.length / total.low;
  }

  void check_without_ball() {
    std::vector<LeadClaim> claims;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const TokenClaims& stated = tokens_[i];
      if (stated.answer == Answer::open || stated.answer == Answer::yes) continue;
      if (stated.without_ball == Answer::yes) {
        if (stated.far_witness == Point::omitted) {
          missing(i, "witness without the ball");
        } else {
          const bool forward = stated.far_height > 0.0;
          claims.push_back(head_.far_claim(i, stated.far_point, forward ? stated.far_height : 1.0,
                                           forward ? positive : infinity));
        }
      }
      if (stated.without_ball == Answer::no) check_never(i, stated.far_weights);
    }
    check_leads(claims, "does not lead at its witness without the ball");
  }

  /// With weights of sum one: Σ λ_j (A_i − A_j) is zero and Σ λ_j (a_i − a_j) is at most zero. A weight on
  /// the index after the last token compensates a negative value of the latter; it is at most half of the
  /// total.
  void check_never(std::size_t index, std::vector<Weight> weights) {
    weights.erase(std::remove_if(weights.begin(), weights.end(),
                                 [&](const Weight& weight) { return weight.index == tokens_.size(); }),
                  weights.end());
    const Total total = total_of(weights, index);
    double size = infinity;
    if (total.valid) {
      const Head::Difference difference = head_.difference(index, weights);
      const double beyond = std::max(0.0, stretch_ * difference.offset.high());
      size = up(std::hypot(difference.length, beyond) / total.low);
    }
    found_.check(size <= 3.0 * cone_tie_ * (1.0 + 1e-9), token(index),
                 "its weights without the ball do not cancel as stated");
  }

  void check_probabilities() {
    std::vector<std::optional<ProbabilityBounds>> bounds(tokens_.size());
    parallel_for(tokens_.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const TokenClaims& stated = tokens_[i];
        if (stated.point == Point::omitted || stated.tangent == Point::omitted) continue;
        bounds[i] = head_.soft_cap() > 0.0 ? capped_probability(i) : probability(i);
      }
    });
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (!bounds[i]) {
        missing(i, "points of probability");
        continue;
      }
      found_.check(bounds[i]->lower >= tokens_[i].probability_lower * (1.0 - last_bits), token(i),
                   "has a smaller probability at its point than the stated lower bound");
      if (head_.soft_cap() > 0.0) continue;
      found_.check(bounds[i]->upper <= tokens_[i].probability_upper * (1.0 + last_bits), token(i),
                   "has a larger bound of its probability than the stated upper bound");
    }
    if (head_.soft_cap() > 0.0) {
      found_.not_checkable.push_back(
          {"max_probability.upper", "behind a soft cap the result proves no upper ends"});
    }
  }

  [[nodiscard]] ProbabilityBounds probability(std::size_t index) const {
    const TokenClaims& stated = tokens_[index];
    ProbabilityBounds bounds = probability_from_leads(stated.lower, stated.upper, head_.tokens());
    if (stated.point == Point::given) {
      bounds.lower = std::max(bounds.lower, probability_at(head_, index, stated.probable_point));
    }
    if (stated.tangent == Point::given) {
      bounds.upper = std::min(bounds.upper, probability_by_tangent(head_, index, stated.tangent_point));
    }
    bounds.upper = std::min(bounds.upper, probability_by_weights(head_, index, stated.probability_weights));
    if (head_.sphere() && head_.dimension() == 1) {
      bounds.upper = std::min(bounds.upper, probability_at_two_points(head_, index));
    }
    return bounds;
  }

  /// Behind a soft cap: the probabilities at its stated points, including the point where it leads.
  [[nodiscard]] ProbabilityBounds capped_probability(std::size_t index) const {
    const TokenClaims& stated = tokens_[index];
    ProbabilityBounds bounds;
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
  NormKind kind_;
  double eps_;
  double factor_;
  const VerifyOptions& options_;
  std::vector<TokenClaims> tokens_{};
  double tie_ = 0.0;
  double cone_tie_ = 0.0;
  double stretch_ = 1.0;
  Verification found_{};
};

}  // namespace

Verification verify_reach(const Result& result, const VocabularyHead& head, const Folder* folder,
                          const VerifyOptions& options) {
  return ReachCheck(result, head, folder, options).run();
}

}  // namespace normscope::certificates
