#include <normscope/selectability/reach.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

#include "ascent.hpp"
#include "decide_tokens.hpp"
#include "lead_oracle.hpp"

namespace normscope::selectability {
namespace {

using proof::Answer;

/// Tokens decided together: enough for a matrix product, few enough for the memory of their working sets.
std::size_t batch_size(std::size_t width) { return std::clamp<std::size_t>(65536 / width, 16, 64); }
/// Tokens that ascend together, which need no working sets: fewer if a product with all tokens takes long,
/// because Ctrl-C and the limit of work take effect between batches.
std::size_t ascent_batch_size(const Logits& logits) {
  constexpr double operations = 0x1p34;
  const double of_a_token = static_cast<double>(logits.tokens) * static_cast<double>(logits.width);
  return static_cast<std::size_t>(std::clamp(operations / of_a_token, 64.0, 512.0));
}

void decide_alone(TokenReach& token) {
  token.done = true;
  token.answer = Answer::yes;
  token.unbounded = Answer::yes;
  token.lower = std::numeric_limits<double>::infinity();
}

/// The tokens most often in the way of those that do not lead at their own direction. They depend on the
/// logits alone, not on the tokens that are decided already.
Front front_of(const Logits& logits, const SinglePrecision& single, const std::vector<Lead>& leads) {
  const std::size_t most = std::min<std::size_t>(1024, logits.tokens / 16);
  std::vector<std::size_t> times(logits.tokens);
  for (const Lead& lead : leads) {
    if (!(lead.lower > 0.0)) ++times[lead.constraint];
  }
  std::vector<std::size_t> tokens;
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    if (times[token] > 0) tokens.push_back(token);
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](std::size_t a, std::size_t b) { return times[a] > times[b]; });
  tokens.resize(std::min(tokens.size(), most));
  std::sort(tokens.begin(), tokens.end());
  return {logits, single, std::move(tokens)};
}

/// Returns the front of those that are left.
Front decide_screened(const Logits& logits, const SinglePrecision& single, std::vector<TokenReach>& tokens,
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
  return front_of(logits, single, leads);
}

/// The indices [begin, begin + count) of `items`, as far as there are so many.
std::vector<std::size_t> batch_of(const std::vector<std::size_t>& items, std::size_t begin,
                                  std::size_t count) {
  return {items.begin() + static_cast<std::ptrdiff_t>(begin),
          items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), begin + count))};
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
    std::vector<Start> starts;
    for (const std::size_t token : asked) starts.push_back({.token = token});
    for (Outcome& outcome : decide_tokens(oracle, starts, options)) {
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

/// Decides the tokens that the first product leaves open, within the limit of work: those that a few steps
/// decide, then the others.
class Decision {
 public:
  Decision(const Logits& logits, const SinglePrecision& single, std::vector<TokenReach>& tokens,
           const ReachOptions& options)
      : logits_(logits),
        oracle_{.logits = &logits, .single = &single},
        tokens_(tokens),
        options_(options),
        team_(*options.team),
        starts_(logits.tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (!tokens[i].done) open_.push_back(i);
    }
  }

  void ascend_all(const Front& front) {
    each_batch("token", ascent_batch_size(logits_), [&](const std::vector<std::size_t>& own) {
      std::vector<std::size_t> runners_up;
      for (const std::size_t token : own) runners_up.push_back(tokens_[token].runner_up);
      std::size_t rounds = 0;
      for (Ascent& ascent : ascend(oracle_, own, runners_up, front, options_)) {
        rounds += ascent.outcome.rounds;
        const std::size_t index = ascent.outcome.token;
        starts_[index] = std::move(ascent.constraints);
        if (ascent.outcome.answer != Answer::yes) continue;
        TokenReach& token = tokens_[index];
        // The lead over one token bounds the lead over all; several may do so better.
        token.upper = upper_bound(oracle_, index, {{token.runner_up, 1.0}});
        take(token, std::move(ascent.outcome));
        token.unbounded = Answer::yes;
        token.done = true;
      }
      return rounds;
    });
    std::erase_if(open_, [this](std::size_t token) { return tokens_[token].done; });
  }

  void solve_all() {
    Unbounded unbounded(oracle_);
    each_batch("hard token", batch_size(logits_.width), [&](const std::vector<std::size_t>& own) {
      std::vector<Start> starts;
      for (const std::size_t token : own) {
        starts.push_back({.token = token, .constraints = std::move(starts_[token])});
      }
      std::size_t rounds = 0;
      for (Outcome& outcome : decide_tokens(oracle_, starts, options_)) {
        rounds += outcome.rounds;
        TokenReach& token = tokens_[outcome.token];
        take(token, std::move(outcome));
      }
      unbounded.decide(own, tokens_, options_);
      for (const std::size_t token : own) tokens_[token].done = true;
      return rounds;
    });
  }

 private:
  /// Calls `decide(tokens)`, which returns the number of its products, for this member's part of each batch
  /// of open tokens, until work runs out.
  template <typename Decide>
  void each_batch(const char* what, std::size_t for_one, const Decide& decide) {
    const std::size_t batch = for_one * team_.size();
    for (std::size_t begin = 0; begin < open_.size(); begin += batch) {
      together(team_, [&] { options_.progress(what, begin, open_.size()); });
      if (spent_ >= options_.work) return;
      const std::vector<std::size_t> some = batch_of(open_, begin, batch);
      const std::size_t rounds = decide(own_part(some, team_));
      exchange(some, tokens_, team_);
      share_starts(some);
      spent_ += work_of_team(logits_, rounds, team_);
    }
    together(team_, [&] { options_.progress(what, open_.size(), open_.size()); });
  }

  /// Completes `starts_`, since the tokens left are dealt out again.
  void share_starts(const std::vector<std::size_t>& some) {
    if (team_.size() == 1) return;
    Packer own;
    for (const std::size_t token : own_part(some, team_)) own.put(starts_[token]);
    const std::vector<std::vector<std::byte>> all = gathered(own.bytes(), team_);
    for (std::size_t member = 0; member < team_.size(); ++member) {
      Unpacker from(all[member]);
      for (std::size_t i = team_.first_of(member, some.size()); i < team_.first_of(member + 1, some.size());
           ++i) {
        from.get(starts_[some[i]]);
      }
      from.finish();
    }
  }

  const Logits& logits_;
  LeadOracle oracle_;
  std::vector<TokenReach>& tokens_;
  const ReachOptions& options_;
  const Team& team_;
  std::vector<std::size_t> open_{};
  std::vector<std::vector<std::size_t>> starts_;  ///< per token: where the ascent left it
  double spent_ = 0.0;
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
  Front front;
  if (options.screen) front = decide_screened(logits, single, tokens, options);
  Decision decision(logits, single, tokens, options);
  decision.ascend_all(front);
  decision.solve_all();
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
