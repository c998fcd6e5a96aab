#include <normscope/selectability/reach.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

#include "decide_tokens.hpp"
#include "lead_oracle.hpp"

namespace normscope::selectability {
namespace {

using proof::Answer;

/// Tokens decided together: enough for a matrix product, few enough for the memory of their working sets.
std::size_t batch_size(std::size_t width) { return std::clamp<std::size_t>(65536 / width, 16, 64); }

void decide_alone(TokenReach& token) {
  token.done = true;
  token.answer = Answer::yes;
  token.unbounded = Answer::yes;
  token.lower = std::numeric_limits<double>::infinity();
}

void decide_screened(const Logits& logits, const SinglePrecision& single, std::vector<TokenReach>& tokens,
                     const ReachOptions& options) {
  const std::vector<Lead> leads = screen(logits, single, options.threads, options.progress, *options.team);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    TokenReach& token = tokens[i];
    if (token.done) continue;
    token.runner_up = leads[i].constraint;
    double lower = leads[i].lower;
    if (logits.sphere && lower > 0.0) {
      lower -= 2.0 * logits.scale * distance_to_sphere(logits, own_direction(logits, i));
    }
    if (!(lower > 0.0)) continue;
    token.done = true;
    token.answer = Answer::yes;
    token.unbounded = Answer::yes;
    token.lower = lower;
    // The lead over this one token bounds the lead over all.
    token.upper = upper_bound({.logits = &logits, .single = &single}, i, {{token.runner_up, 1.0}});
  }
}

/// The work of the `rounds` of all members of a team, each a product of a point with all tokens.
double work_of_team(const Logits& logits, std::size_t rounds, const Team& team) {
  Packer own;
  own.put(static_cast<std::uint64_t>(rounds));
  double total = 0.0;
  for (const std::vector<std::byte>& of_member : gathered(own.bytes(), team)) {
    std::uint64_t found = 0;
    Unpacker from(of_member);
    from.get(found);
    total += work_of(logits, static_cast<double>(found));
  }
  return total;
}

/// An upper bound and its proof.
void take_upper(TokenReach& token, Outcome& outcome) {
  if (outcome.upper >= token.upper) return;
  token.upper = outcome.upper;
  token.weights = std::move(outcome.weights);
}

void take(TokenReach& token, Outcome outcome) {
  token.answer = outcome.answer;
  token.lower = outcome.lower;
  token.witness = std::move(outcome.witness);
  token.only_inside = outcome.only_inside;
  take_upper(token, outcome);
}

/// Weights that prove a token unreachable for every u also prove it in the ball. They are tried where the
/// search in the ball ended undecided, since its rounding errors differ. The cone's constraint that the
/// height is positive is left out.
void take_proof(const LeadOracle& ball, std::size_t index, double tolerance, TokenReach& token) {
  std::vector<proof::PointWeight> weights = token.unbounded_weights;
  std::erase_if(weights, [&](const proof::PointWeight& share) { return share.id >= ball.rows(); });
  const double upper = upper_bound(ball, index, weights);
  // Qualified, since std::tie fits the arguments better.
  if (!(upper <= selectability::tie(ball, index, weights, tolerance))) return;
  token.answer = Answer::no;
  token.upper = upper;
  token.weights = std::move(weights);
}

/// The oracle without the bound on the norm's output, constructed when the first token needs it.
class Unbounded {
 public:
  explicit Unbounded(const LeadOracle& ball) : ball_(ball), same_(!has_offsets(*ball.logits)) {}

  void decide(const std::vector<std::size_t>& indices, std::vector<TokenReach>& tokens,
              const ReachOptions& options) {
    std::vector<std::size_t> asked;
    for (const std::size_t index : indices) {
      TokenReach& token = tokens[index];
      token.unbounded = token.answer;
      if (token.answer == Answer::yes) continue;
      // Without offsets the ball already decides this.
      if (same_) {
        token.unbounded_weights = upper_weights(token);
      } else {
        asked.push_back(index);
      }
    }
    if (asked.empty()) return;
    if (cone_.tokens == 0) {
      cone_ = cone(*ball_.logits);
      single_ = single_precision(cone_);
    }
    const LeadOracle oracle{.logits = &cone_, .single = &single_, .last_is_positive = true};
    for (Outcome& outcome : decide_tokens(oracle, asked, options)) {
      TokenReach& token = tokens[outcome.token];
      token.unbounded = outcome.answer;
      if (outcome.answer == Answer::no) {
        token.unbounded_weights = std::move(outcome.weights);
        // Where all logits are equal, the search ends without another token, which a proof has to name.
        if (cone_.scale == 0.0) token.unbounded_weights = {{outcome.token == 0 ? 1U : 0U, 1.0}};
        if (token.answer == Answer::undecided) take_proof(ball_, outcome.token, options.tolerance, token);
      }
      if (outcome.answer == Answer::yes) token.unbounded_witness = std::move(outcome.witness);
    }
  }

 private:
  const LeadOracle& ball_;
  bool same_;
  Logits cone_{};
  SinglePrecision single_{};
};

}  // namespace

void decide(const Logits& logits, std::vector<TokenReach>& tokens, const ReachOptions& options) {
  if (tokens.empty()) tokens.resize(logits.tokens);
  if (tokens.size() != logits.tokens) {
    throw Error(ErrorCode::Shape,
                fmt::format("reach: answers for {} tokens, expected {}", tokens.size(), logits.tokens));
  }
  if (logits.tokens == 1) return decide_alone(tokens[0]);
  const auto open = [](const TokenReach& token) { return !token.done; };
  if (std::none_of(tokens.begin(), tokens.end(), open)) return;
  const SinglePrecision single = single_precision(logits);
  if (options.screen) decide_screened(logits, single, tokens, options);

  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].done) left.push_back(i);
  }
  const LeadOracle oracle{.logits = &logits, .single = &single};
  Unbounded unbounded(oracle);
  const Team& team = *options.team;
  const std::size_t batch = batch_size(logits.width) * team.size();
  double spent = 0.0;
  for (std::size_t begin = 0; begin < left.size(); begin += batch) {
    together(team, [&] { options.progress("token", begin, left.size()); });
    if (spent >= options.work) return;
    const std::vector<std::size_t> some(
        left.begin() + static_cast<std::ptrdiff_t>(begin),
        left.begin() + static_cast<std::ptrdiff_t>(std::min(left.size(), begin + batch)));
    const std::vector<std::size_t> own = own_part(some, team);
    std::size_t rounds = 0;
    for (Outcome& outcome : decide_tokens(oracle, own, options)) {
      rounds += outcome.rounds;
      TokenReach& token = tokens[outcome.token];
      take(token, std::move(outcome));
    }
    unbounded.decide(own, tokens, options);
    for (const std::size_t token : own) tokens[token].done = true;
    exchange(some, tokens, team);
    spent += work_of_team(logits, rounds, team);
  }
  together(team, [&] { options.progress("token", left.size(), left.size()); });
}

namespace {

/// Narrows the bounds of leads.
struct Sharpener {
  explicit Sharpener(const Logits& from)
      : logits(from), single(single_precision(logits)), gap(1e-6 * logits.scale) {}

  /// Computes the largest leads of the given tokens, or shows that they are at least `enough`; returns for
  /// each whether its largest lead is known, and adds to `rounds`.
  std::vector<bool> work_out(std::vector<TokenReach>& tokens, const std::vector<std::size_t>& asked,
                             double enough, const ReachOptions& options, std::size_t& rounds) const {
    const LeadOracle oracle{.logits = &logits, .single = &single};
    std::vector<Start> starts;
    for (const std::size_t token : asked) {
      Start start{
          .token = token, .lower = tokens[token].lower, .point = witness(logits, token, tokens[token])};
      for (const proof::PointWeight& share : upper_weights(tokens[token]))
        start.constraints.push_back(share.id);
      starts.push_back(std::move(start));
    }
    std::vector<bool> largest;
    for (Outcome& outcome : largest_leads(oracle, std::move(starts), gap, enough, options)) {
      TokenReach& token = tokens[outcome.token];
      rounds += outcome.rounds;
      largest.push_back(outcome.largest);
      take_upper(token, outcome);
      if (!(outcome.lower > token.lower)) continue;
      token.lower = outcome.lower;
      token.witness = std::move(outcome.witness);
    }
    return largest;
  }

  const Logits& logits;
  SinglePrecision single;
  double gap;
};

/// An upper bound of the largest leads of the `wanted` tokens, from the bounds known so far.
double threshold(const std::vector<TokenReach>& tokens, const std::vector<bool>& sharp, std::size_t wanted) {
  std::vector<double> leads;
  for (std::size_t token = 0; token < tokens.size(); ++token) {
    if (sharp[token]) leads.push_back(tokens[token].upper);
  }
  if (leads.size() < wanted) return std::numeric_limits<double>::infinity();
  std::nth_element(leads.begin(), leads.begin() + static_cast<std::ptrdiff_t>(wanted - 1), leads.end());
  return leads[wanted - 1];
}

}  // namespace

std::vector<std::size_t> reachable_by_lead(const std::vector<TokenReach>& tokens) {
  std::vector<std::size_t> result;
  for (std::size_t token = 0; token < tokens.size(); ++token) {
    if (tokens[token].done && tokens[token].answer == Answer::yes) result.push_back(token);
  }
  std::stable_sort(result.begin(), result.end(),
                   [&](std::size_t a, std::size_t b) { return tokens[a].lower < tokens[b].lower; });
  return result;
}

void sharpen(const Logits& logits, std::vector<TokenReach>& tokens, const std::vector<std::size_t>& asked,
             const ReachOptions& options) {
  if (logits.tokens == 1) return;
  const Sharpener sharpener(logits);
  const std::size_t batch = batch_size(logits.width);
  for (std::size_t begin = 0; begin < asked.size(); begin += batch) {
    options.progress("lead", begin, asked.size());
    std::vector<std::size_t> some;
    for (std::size_t i = begin; i < std::min(asked.size(), begin + batch); ++i) {
      if (tokens[asked[i]].answer == Answer::yes) some.push_back(asked[i]);
    }
    std::size_t rounds = 0;
    static_cast<void>(
        sharpener.work_out(tokens, some, std::numeric_limits<double>::infinity(), options, rounds));
  }
  options.progress("lead", asked.size(), asked.size());
}

std::size_t sharpen_nearest(const Logits& logits, std::vector<TokenReach>& tokens, std::vector<bool>& sharp,
                            std::size_t& worked, std::size_t wanted, std::size_t most,
                            const ReachOptions& options) {
  sharp.resize(logits.tokens, false);
  if (wanted == 0 || logits.tokens == 1) return 0;
  const Team& team = *options.team;
  std::optional<Sharpener> sharpener;
  const std::size_t batch = batch_size(logits.width);
  double spent = 0.0;
  while (true) {
    const double enough = threshold(tokens, sharp, wanted);
    std::vector<std::size_t> asked = reachable_by_lead(tokens);
    asked.erase(
        std::remove_if(asked.begin(), asked.end(),
                       [&](std::size_t token) { return sharp[token] || !(tokens[token].lower < enough); }),
        asked.end());
    together(team, [&] { options.progress("lead", worked, worked + asked.size()); });
    if (asked.empty() || worked >= most || spent >= options.work) return asked.size();
    asked.resize(std::min({asked.size(), batch, most - worked}));
    if (!sharpener) sharpener.emplace(logits);
    const std::vector<std::size_t> own = own_part(asked, team);
    std::size_t rounds = 0;
    const std::vector<bool> largest = sharpener->work_out(tokens, own, enough, options, rounds);
    spent += work_of_team(logits, rounds, team);
    std::vector<std::byte> finals;
    for (std::size_t i = 0; i < own.size(); ++i) {
      // Bounds that are not final reached `enough`, so that the token is not among the nearest.
      finals.push_back(std::byte{largest[i] || tokens[own[i]].lower < enough});
    }
    exchange(asked, tokens, team);
    std::size_t token = 0;
    for (const std::vector<std::byte>& of_member : gathered(finals, team)) {
      for (const std::byte is_final : of_member) sharp[asked[token++]] = is_final != std::byte{0};
    }
    worked += asked.size();
  }
}

}  // namespace normscope::selectability
