#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/selectability/reach.hpp>

#include "decide_tokens.hpp"

namespace normscope::selectability {
namespace {

using proof::Answer;
using proof::PointWeight;

constexpr SnapshotKind reach_kind{.name = "reach",
                                  .version = 7,
                                  .others = "another model or tolerance",
                                  .former = "normscope.reach_state/"};

Digest hash_inputs(const Logits& logits, double tolerance, unsigned threads) {
  Packer inputs;
  inputs.put(logits.tokens);
  inputs.put(logits.width);
  inputs.put(logits.rounding);
  inputs.put(logits.sphere);
  inputs.put(logits.centers);
  inputs.put(tolerance);
  inputs.put(piecewise_sha256(std::as_bytes(std::span(logits.rows)), threads));
  inputs.put(piecewise_sha256(std::as_bytes(std::span(logits.offsets)), threads));
  return sha256(inputs.bytes());
}

/// Whether a token's answer needs a saved proof: one decided by its own direction alone does not.
bool is_kept(const TokenReach& token) {
  if (!token.done || token.answer == Answer::undecided || token.unbounded == Answer::undecided) return false;
  return token.answer == Answer::no || !token.witness.empty() || !token.weights.empty();
}

/// Tokens with the two points that prove the bounds on their largest probabilities. With eps = 0 the bounds
/// depend on more than the points and are computed again.
std::vector<std::size_t> with_points(const Logits& logits, const Survey& survey) {
  std::vector<std::size_t> tokens;
  for (const std::size_t token : survey.refined) {
    const Probability& known = survey.probabilities[token];
    if (!logits.sphere && !known.point.empty() && !known.tangent.empty()) tokens.push_back(token);
  }
  return tokens;
}

bool are_shares(const std::vector<PointWeight>& shares, std::size_t ids) {
  return std::all_of(shares.begin(), shares.end(), [ids](const PointWeight& share) {
    return share.id < ids && std::isfinite(share.weight) && share.weight >= 0.0;
  });
}

bool is_point(const std::vector<double>& point, std::size_t width) {
  return point.size() == width &&
         std::all_of(point.begin(), point.end(), [](double value) { return std::isfinite(value); });
}

/// Whether these are numbers that `decide` gives a decided token; its proofs are checked afterwards.
bool is_whole_reach(const TokenReach& token, const Logits& logits) {
  const auto decided = [](Answer answer) { return answer == Answer::yes || answer == Answer::no; };
  const auto absent_or_point = [](const std::vector<double>& point, std::size_t width) {
    return point.empty() || is_point(point, width);
  };
  return token.done && !token.only_inside && decided(token.answer) && decided(token.unbounded) &&
         !std::isnan(token.lower) && !std::isnan(token.upper) && token.runner_up < logits.tokens &&
         are_shares(token.weights, logits.tokens) && are_shares(token.unbounded_weights, logits.tokens + 1) &&
         absent_or_point(token.witness, logits.width) &&
         absent_or_point(token.unbounded_witness, logits.width + 1);
}

/// What a snapshot holds.
struct Saved {
  std::vector<std::size_t> kept{};  ///< tokens whose answers are saved, in order
  std::vector<std::size_t> sharp{};
  std::size_t worked = 0;
  double gap = 0.0;                    ///< of the probabilities
  std::vector<std::size_t> refined{};  ///< tokens whose points are saved
};

template <typename Visit>
void each_field(Saved& saved, const Visit& visit) {
  visit(saved.kept);
  visit(saved.sharp);
  visit(saved.worked);
  visit(saved.gap);
  visit(saved.refined);
}

}  // namespace

ReachState::ReachState(std::filesystem::path path, const Logits& logits, ReachOptions options,
                       double probability_gap)
    : path_(std::move(path)),
      logits_(logits),
      options_(std::move(options)),
      probability_gap_(probability_gap) {
  if (!path_.empty()) fingerprint_ = hash_inputs(logits, options_.tolerance, options_.threads);
}

bool ReachState::exists() const {
  if (path_.empty()) return false;
  return options_.team->any(options_.team->is_first() && std::filesystem::exists(path_));
}

Survey ReachState::load() const {
  std::vector<std::byte> payload;
  if (options_.team->is_first()) payload = load_snapshot(path_, reach_kind, fingerprint_);
  payload = gathered(payload, *options_.team).front();
  const std::string misfit =
      fmt::format("{}: holds what reach did not save; delete it to start again", path_.string());
  const auto expect = [&](bool holds) {
    if (!holds) throw Error(ErrorCode::Format, misfit);
  };
  const auto are_tokens = [&](const std::vector<std::size_t>& tokens) {
    return std::is_sorted(tokens.begin(), tokens.end(), std::less_equal<>()) &&
           (tokens.empty() || tokens.back() < logits_.tokens);
  };
  Unpacker from(payload, misfit);
  const auto get = [&](auto& field) { from.get(field); };
  Saved saved;
  each_field(saved, get);
  expect(are_tokens(saved.kept) && are_tokens(saved.sharp) && are_tokens(saved.refined));

  Survey survey;
  survey.worked = saved.worked;
  survey.tokens.resize(logits_.tokens);
  for (const std::size_t token : saved.kept) {
    each_field(survey.tokens[token], get);
    expect(is_whole_reach(survey.tokens[token], logits_));
  }
  survey.sharp.assign(logits_.tokens, false);
  for (const std::size_t token : saved.sharp) survey.sharp[token] = true;
  std::vector<std::vector<double>> points(2 * saved.refined.size());
  for (std::vector<double>& point : points) {
    get(point);
    expect(!logits_.sphere && is_point(point, logits_.width));
  }
  from.finish();

  // Each member checks its part, and ends all if a proof does not hold.
  const std::vector<std::size_t> unproved =
      selectability::unproved(logits_, survey.tokens, own_part(saved.kept, *options_.team), options_);
  if (!unproved.empty()) {
    throw Error(
        ErrorCode::Format,
        fmt::format(
            "{}: holds an answer for token {} that its proof does not support; delete it to start again",
            path_.string(), unproved.front()));
  }
  // Bounds are not saved; they are recomputed from the points, which another gap would not have.
  survey.probabilities.resize(logits_.tokens);
  if (saved.gap != probability_gap_) return survey;
  survey.refined = saved.refined;
  if (survey.refined.empty()) return survey;
  std::vector<Probability> proved = prove_probabilities(logits_, survey.refined, points, options_.threads);
  for (std::size_t i = 0; i < proved.size(); ++i) {
    survey.probabilities[survey.refined[i]] = std::move(proved[i]);
  }
  return survey;
}

void ReachState::save(const Survey& survey) const {
  if (path_.empty() || !options_.team->is_first()) return;
  Saved saved{.worked = survey.worked, .gap = probability_gap_, .refined = with_points(logits_, survey)};
  for (std::size_t i = 0; i < survey.tokens.size(); ++i) {
    if (i < survey.sharp.size() && survey.sharp[i]) saved.sharp.push_back(i);
    if (is_kept(survey.tokens[i])) saved.kept.push_back(i);
  }
  Packer payload;
  const auto put = [&](const auto& field) { payload.put(field); };
  each_field(saved, put);
  for (const std::size_t token : saved.kept) each_field(survey.tokens[token], put);
  for (const std::size_t token : saved.refined) {
    put(survey.probabilities[token].point);
    put(survey.probabilities[token].tangent);
  }
  save_snapshot(path_, reach_kind, fingerprint_, payload.bytes());
}

}  // namespace normscope::selectability
