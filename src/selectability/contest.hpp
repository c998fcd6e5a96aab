#pragma once

#include <cstddef>
#include <vector>

#include <normscope/convex/ball.hpp>
#include <normscope/selectability/reach.hpp>

#include "field.hpp"

namespace normscope::selectability {

/// The answer for one token and what proves it.
struct Outcome {
  std::size_t token = 0;
  convex::Answer answer = convex::Answer::undecided;
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  std::vector<double> witness{};
  std::vector<convex::Share> weights{};
  bool only_inside = false;         ///< see `TokenReach`
  std::vector<std::size_t> ends{};  ///< see `TokenReach`
  std::size_t rounds = 0;           ///< of asking all tokens
  /// Whether the bounds of the largest lead are as near as they come.
  bool largest = false;
};

/// What is known of a token's leads before they are worked out.
struct Start {
  std::size_t token = 0;
  double lower = 0.0;
  std::vector<double> point{};        ///< where it leads by `lower`
  std::vector<std::size_t> rivals{};  ///< other tokens that matter
};

/// Decides some tokens of a field together: each keeps the rivals that were found to matter, solves its own
/// small problem over them and asks all tokens about the point it gets, until none objects or the weights
/// prove that there is no such point.
[[nodiscard]] std::vector<Outcome> contest(const Field& field, const std::vector<std::size_t>& tokens,
                                           const ReachOptions& options);

/// Goes on where a lead is known already: until the largest there is lies between bounds that are `gap`
/// apart, or rounding alone is left, or a lead of `enough` is found.
[[nodiscard]] std::vector<Outcome> largest_leads(const Field& field, std::vector<Start> starts, double gap,
                                                 double enough, const ReachOptions& options);

}  // namespace normscope::selectability
