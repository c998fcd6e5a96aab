#pragma once

#include <cstddef>
#include <vector>

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

/// Known bounds of a token's largest lead before the solver runs.
struct Start {
  std::size_t token = 0;
  double lower = 0.0;
  std::vector<double> point{};             ///< a point where the lead is at least `lower`
  std::vector<std::size_t> constraints{};  ///< tokens of the initial working set
};

/// Decides a batch of tokens. Each token keeps a working set of constraints, solves the
/// subproblem over it, and evaluates all tokens at the resulting point, until no constraint is violated or
/// the weights prove that no such point exists.
[[nodiscard]] std::vector<Outcome> decide_tokens(const LeadOracle& oracle,
                                                 const std::vector<std::size_t>& tokens,
                                                 const ReachOptions& options);

/// Continues from known bounds of a lead until the bounds of the largest lead are at most `gap` apart, only
/// rounding remains, or a lead of at least `enough` is found.
[[nodiscard]] std::vector<Outcome> largest_leads(const LeadOracle& oracle, std::vector<Start> starts,
                                                 double gap, double enough, const ReachOptions& options);

}  // namespace normscope::selectability
