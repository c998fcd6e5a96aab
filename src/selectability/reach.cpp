#include <normscope/selectability/reach.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/assert.hpp>
#include <normscope/core/error.hpp>
#include <normscope/numeric/sum.hpp>

#include "contest.hpp"

namespace normscope::selectability {
namespace {

using convex::Answer;

/// Tokens decided together: enough for a product, few enough for what each remembers.
std::size_t batch_size(std::size_t width) { return std::clamp<std::size_t>(16384 / width, 16, 64); }

/// The cone over the logits, a width wider: A u/t + a₀ is argmax for some u and t > 0 when (A, a₀) (u, t) is.
/// Offsets are stretched to the rows' length, which only rescales t.
Logits cone(const Logits& logits) {
  Logits result{.tokens = logits.tokens, .width = logits.width + 1};
  double longest = 0.0;
  double highest = 0.0;
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    longest = std::max(longest, euclidean_norm(logits.view().row(token)));
    highest = std::max(highest, std::abs(logits.offsets[token]));
  }
  const int exponent = longest > 0.0 && highest > 0.0 ? std::ilogb(longest) - std::ilogb(highest) : 0;
  result.rows.reserve(result.tokens * result.width);
  result.offsets.assign(logits.tokens, 0.0);
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    const std::span<const double> row = logits.view().row(token);
    result.rows.insert(result.rows.end(), row.begin(), row.end());
    result.rows.push_back(std::scalbn(logits.offsets[token], exponent));
    const std::span<const double> longer = {result.rows.data() + token * result.width, result.width};
    result.scale = std::max(result.scale, euclidean_norm(longer));
  }
  result.rounding = std::scalbn(logits.rounding, std::max(0, exponent));
  return result;
}

bool has_offsets(const Logits& logits) {
  return std::any_of(logits.offsets.begin(), logits.offsets.end(),
                     [&](double offset) { return offset != logits.offsets.front(); });
}

void decide_alone(TokenReach& token) {
  token.done = true;
  token.answer = Answer::yes;
  token.unbounded = Answer::yes;
  token.lower = std::numeric_limits<double>::infinity();
}

void decide_screened(const Logits& logits, const SinglePrecision& single, std::vector<TokenReach>& tokens,
                     const ReachOptions& options) {
  const std::vector<Lead> leads = screen(logits, single, options.threads, options.progress);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    TokenReach& token = tokens[i];
    if (token.done) continue;
    token.rival = leads[i].rival;
    if (leads[i].lower <= 0.0) continue;
    token.done = true;
    token.answer = Answer::yes;
    token.unbounded = Answer::yes;
    token.lower = leads[i].lower;
    // Over one rival alone no point leads by more than this.
    token.upper = upper_bound({.logits = &logits, .single = &single}, i, {{token.rival, 1.0}});
  }
}

void take(TokenReach& token, Outcome outcome) {
  token.answer = outcome.answer;
  token.lower = outcome.lower;
  token.upper = std::min(outcome.upper, token.upper);
  token.witness = std::move(outcome.witness);
  token.weights = outcome.answer == Answer::yes ? std::vector<convex::Share>{} : std::move(outcome.weights);
}

/// The field without the norm's bound, made when the first token needs it.
class Unbounded {
 public:
  explicit Unbounded(const Logits& logits) : logits_(logits), same_(!has_offsets(logits)) {}

  void decide(std::vector<std::size_t> indices, std::vector<TokenReach>& tokens,
              const ReachOptions& options) {
    std::vector<std::size_t> asked;
    for (const std::size_t index : indices) {
      TokenReach& token = tokens[index];
      token.unbounded = token.answer;
      if (same_) token.unbounded_weights = token.weights;
      if (!same_ && token.answer != Answer::yes) asked.push_back(index);
    }
    if (asked.empty()) return;
    if (cone_.tokens == 0) {
      cone_ = cone(logits_);
      single_ = single_precision(cone_);
    }
    const Field field{.logits = &cone_, .single = &single_, .last_is_positive = true};
    for (Outcome& outcome : contest(field, asked, options)) {
      TokenReach& token = tokens[outcome.token];
      token.unbounded = outcome.answer;
      if (outcome.answer == Answer::no) token.unbounded_weights = std::move(outcome.weights);
    }
  }

 private:
  const Logits& logits_;
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
  const bool fresh = std::all_of(tokens.begin(), tokens.end(), open);
  if (fresh) decide_screened(logits, single, tokens, options);

  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].done) left.push_back(i);
  }
  const Field field{.logits = &logits, .single = &single};
  Unbounded unbounded(logits);
  const std::size_t batch = batch_size(logits.width);
  for (std::size_t begin = 0; begin < left.size(); begin += batch) {
    options.progress("token", begin, left.size());
    const std::vector<std::size_t> some(
        left.begin() + static_cast<std::ptrdiff_t>(begin),
        left.begin() + static_cast<std::ptrdiff_t>(std::min(left.size(), begin + batch)));
    for (Outcome& outcome : contest(field, some, options)) {
      take(tokens[outcome.token], std::move(outcome));
    }
    unbounded.decide(some, tokens, options);
    for (const std::size_t token : some) tokens[token].done = true;
  }
  options.progress("token", left.size(), left.size());
}

void sharpen(const Logits& logits, std::vector<TokenReach>& tokens, const std::vector<std::size_t>& asked,
             const ReachOptions& options) {
  const SinglePrecision single = single_precision(logits);
  const Field field{.logits = &logits, .single = &single};
  const std::size_t batch = batch_size(logits.width);
  for (std::size_t begin = 0; begin < asked.size(); begin += batch) {
    options.progress("lead", begin, asked.size());
    std::vector<std::size_t> some;
    std::vector<double> known;
    for (std::size_t i = begin; i < std::min(asked.size(), begin + batch); ++i) {
      if (tokens[asked[i]].answer != Answer::yes || logits.tokens == 1) continue;
      some.push_back(asked[i]);
      known.push_back(tokens[asked[i]].lower);
    }
    for (Outcome& outcome : largest_leads(field, some, known, 1e-6 * logits.scale, options)) {
      TokenReach& token = tokens[outcome.token];
      token.upper = std::min(token.upper, outcome.upper);
      if (!(outcome.lower > token.lower)) continue;
      token.lower = outcome.lower;
      token.witness = std::move(outcome.witness);
    }
  }
  options.progress("lead", asked.size(), asked.size());
}

std::vector<double> witness(const Logits& logits, std::size_t token, const TokenReach& reach) {
  return reach.witness.empty() ? own_direction(logits, token) : reach.witness;
}

bool verify(const Logits& logits, std::size_t token, const TokenReach& reach, double tolerance) {
  const Field field{.logits = &logits};
  if (reach.answer == Answer::yes) {
    if (reach.unbounded != Answer::yes) return false;
    const std::vector<double> point = witness(logits, token, reach);
    if (point.size() != logits.width) return false;
    double lead = std::numeric_limits<double>::infinity();
    for (std::size_t other = 0; other < logits.tokens; ++other) {
      if (other != token) lead = std::min(lead, lower_bound(field, token, point, other));
    }
    return lead - 2.0 * logits.rounding > 0.0 && reach.lower > 0.0 &&
           lead >= reach.lower - 1e-13 * logits.scale;
  }
  if (reach.answer == Answer::no &&
      !(upper_bound(field, token, reach.weights) <= logits.tolerance(tolerance))) {
    return false;
  }
  if (reach.unbounded != Answer::no) return true;
  if (!has_offsets(logits)) return reach.answer == Answer::no;
  const Logits wider = cone(logits);
  const Field all{.logits = &wider, .last_is_positive = true};
  return upper_bound(all, token, reach.unbounded_weights) <= wider.tolerance(tolerance);
}

}  // namespace normscope::selectability
