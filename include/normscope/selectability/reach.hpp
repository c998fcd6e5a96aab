#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <vector>

#include <normscope/convex/ball.hpp>
#include <normscope/core/progress.hpp>
#include <normscope/selectability/logits.hpp>

/// Which tokens a model can ever output: those whose logit is strictly the largest somewhere.
namespace normscope::selectability {

/// What is known of one token.
struct TokenReach {
  bool done = false;
  /// Behind the norm: with u in the unit ball, or on its sphere where eps = 0.
  convex::Answer answer = convex::Answer::undecided;
  /// Without the norm's bound: for some u of any length. What earlier work calls argmaxable.
  convex::Answer unbounded = convex::Answer::undecided;
  /// Proved: at the witness the logit leads by `lower`, nowhere by more than `upper`.
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  /// |u| <= 1, with eps = 0 equal to 1 but for 2⁻³⁰; empty where it is the token's own row over its length.
  std::vector<double> witness{};
  /// On other tokens: they prove `upper`. Empty where `rival` alone does, or `ends`.
  std::vector<convex::Share> weights{};
  /// Weights on other tokens, and on the id `tokens` for "the length is positive", where not argmaxable.
  std::vector<convex::Share> unbounded_weights{};
  /// A point of the unit ball one wider, where argmaxable but not reachable: at (u, s) the token leads by the
  /// rows (A, stretch a₀) of `without_ball`, and s is positive.
  std::vector<double> unbounded_witness{};
  std::size_t rival = 0;  ///< another token: the next highest where the token's own row points
  /// eps = 0: inside the ball the token leads at some point, on the sphere, which is all the norm gives then,
  /// none was found and none excluded. The answer is undecided.
  bool only_inside = false;
  /// eps = 0 and a space of one dimension, where the sphere is two points (`sphere_points`): a token that
  /// leads over this one, or comes next, at the first and at the second. They prove `upper`.
  std::vector<std::size_t> ends{};
};

struct ReachOptions {
  unsigned threads = 0;
  /// A token that can lead by no more than this times the scale counts as unreachable.
  double tolerance = 1e-12;
  std::size_t rounds = 200;  ///< of asking all tokens, before one stays undecided
  Progress progress{};
  /// When no further batch of tokens is begun; those that are left stay as they are.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  /// Multiplications after which none is begun for tokens that the first product leaves open.
  double work = std::numeric_limits<double>::infinity();
};

/// Decides every token that is not `done`, as far as time and work go. `tokens` is empty or what an earlier,
/// interrupted call left. One matrix product, half of A Aᵀ, settles whoever leads where its own row points;
/// for the others, linear inequalities over the ball with the rows found to matter, until a point or weights
/// prove an answer.
///
/// Errors    Cancelled, with `tokens` holding what is decided so far; Shape
/// Accuracy  every bound is proved, in float32 with its rounding taken off or in float64 (tests:
///           Reach.EveryAnswerIsProved, Reach.AgreesWithBruteForceOverTheDisc)
/// Cost      tokens² width for the product; then tokens · width a round and token left. Never tokens²
///           of memory
void decide(const Logits& logits, std::vector<TokenReach>& tokens, const ReachOptions& options);

/// Moves both bounds of the leads of some reachable tokens together, to 1e-6 of the scale where rounding
/// lets. Errors    Cancelled Cost      tokens · width a round and token asked for
void sharpen(const Logits& logits, std::vector<TokenReach>& tokens, const std::vector<std::size_t>& asked,
             const ReachOptions& options);

/// The same for the reachable tokens with the smallest largest leads, `wanted` of them, as far as to know
/// that no other is among these. `sharp` says of each token whether its bounds are as near as they come,
/// `worked` how many were worked on: from there an interrupted call is gone on with.
/// Returns   tokens that might still be among those: none, unless time or `most` of them did not suffice
/// Errors    Cancelled
/// Accuracy  (test: Survey.NoTokenIsNearerThanThoseNamed)
[[nodiscard]] std::size_t sharpen_nearest(const Logits& logits, std::vector<TokenReach>& tokens,
                                          std::vector<bool>& sharp, std::size_t& worked, std::size_t wanted,
                                          std::size_t most, const ReachOptions& options);

/// The point of the ball at which a reachable token leads by `lower`.
/// Requires  answer yes; a reach as decided here: its own direction stands for a witness that is empty
[[nodiscard]] std::vector<double> witness(const Logits& logits, std::size_t token, const TokenReach& reach);

/// With eps = 0 and logits.dimension() = 1: the points there are, to a rounding.
[[nodiscard]] std::vector<std::vector<double>> sphere_points(const Logits& logits);

/// The weights on other tokens that prove `upper`; none for one that is infinite.
[[nodiscard]] std::vector<convex::Share> upper_weights(const TokenReach& reach);

/// How answers without the norm's bound are measured: rows are (A, stretch a₀), the stretch a power of two
/// that brings offsets to the rows' size, and what is no larger than `tie` is nothing.
struct WithoutBall {
  double stretch = 1.0;
  double tie = 0.0;
};
[[nodiscard]] WithoutBall without_ball(const Logits& logits, double tolerance);

/// Of the tokens `asked`, those whose answers and bounds the logits do not bear out; trusts nothing else in
/// `tokens`. Errors    Cancelled Cost      tokens · width for each (test: Reach.ForgedProofsAreFound)
[[nodiscard]] std::vector<std::size_t> unproved(const Logits& logits, const std::vector<TokenReach>& tokens,
                                                const std::vector<std::size_t>& asked,
                                                const ReachOptions& options);

/// The same for one token: whether they bear it out.
[[nodiscard]] bool verify(const Logits& logits, std::size_t token, const TokenReach& reach,
                          double tolerance = 1e-12);

}  // namespace normscope::selectability
