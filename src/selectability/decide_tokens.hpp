#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/proof/ball.hpp>
#include <normscope/selectability/reach.hpp>

#include "lead_oracle.hpp"

namespace normscope::selectability {

/// The answer for one token, and its proof.
struct Outcome {
  std::size_t token = 0;
  proof::Answer answer = proof::Answer::undecided;
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  std::vector<double> witness{};
  std::vector<proof::PointWeight> weights{};
  bool only_inside = false;  ///< see `TokenReach`
  std::size_t rounds = 0;    ///< number of products with all tokens
  /// Whether the bounds of the largest lead cannot be improved further.
  bool largest = false;
};

/// What is known of a token before the solver runs.
struct Start {
  std::size_t token = 0;
  double lower = 0.0;
  std::vector<double> point{};             ///< a point where the lead is at least `lower`
  std::vector<std::size_t> constraints{};  ///< tokens of the initial working set
};

/// Decides a batch of tokens. Each token keeps a working set of constraints, solves the
/// subproblem over it, and evaluates all tokens at the resulting point, until no constraint is violated or
/// the weights prove that no such point exists. Only the token and constraints of a start are used.
[[nodiscard]] std::vector<Outcome> decide_tokens(const LeadOracle& oracle, const std::vector<Start>& starts,
                                                 const ReachOptions& options);

/// Continues from known bounds of a lead until the bounds of the largest lead are at most `gap` apart, only
/// rounding remains, or a lead of at least `enough` is found.
[[nodiscard]] std::vector<Outcome> largest_leads(const LeadOracle& oracle, std::vector<Start> starts,
                                                 double gap, double enough, const ReachOptions& options);

template <typename T, typename Of>
concept MaybeConst = std::same_as<std::remove_const_t<T>, Of>;

/// Calls `visit` for every field.
template <MaybeConst<TokenReach> Token, typename Visit>
void each_field(Token& token, const Visit& visit) {
  visit(token.done);
  visit(token.answer);
  visit(token.unbounded);
  visit(token.lower);
  visit(token.upper);
  visit(token.witness);
  visit(token.weights);
  visit(token.unbounded_weights);
  visit(token.unbounded_witness);
  visit(token.runner_up);
  visit(token.only_inside);
}

template <MaybeConst<Probability> Bounds, typename Visit>
void each_field(Bounds& probability, const Visit& visit) {
  visit(probability.lower);
  visit(probability.upper);
  visit(probability.point);
  visit(probability.tangent);
  visit(probability.weights);
}

/// What `ReachOptions::work` counts for that many products of a point with all tokens in float32.
inline double work_of(const Logits& logits, double products) {
  return products * static_cast<double>(logits.tokens * logits.width) / 8.0;
}

/// This member's part of `items`.
template <typename T>
std::vector<T> own_part(const std::vector<T>& items, const Team& team) {
  const auto at = [&](std::size_t member) {
    return items.begin() + static_cast<std::ptrdiff_t>(team.first_of(member, items.size()));
  };
  return {at(team.rank()), at(team.rank() + 1)};
}

/// Completes in all members those of `values` that `indices` name, where each member has its part of them.
template <typename T>
void exchange(const std::vector<std::size_t>& indices, std::vector<T>& values, const Team& team) {
  if (team.size() == 1) return;
  Packer own;
  for (const std::size_t index : own_part(indices, team)) {
    each_field(values[index], [&](const auto& field) { own.put(field); });
  }
  const std::vector<std::vector<std::byte>> all = gathered(own.bytes(), team);
  for (std::size_t member = 0; member < team.size(); ++member) {
    if (member == team.rank()) continue;
    Unpacker from(all[member]);
    for (std::size_t i = team.first_of(member, indices.size()); i < team.first_of(member + 1, indices.size());
         ++i) {
      each_field(values[indices[i]], [&](auto& field) { from.get(field); });
    }
    from.finish();
  }
}

}  // namespace normscope::selectability
