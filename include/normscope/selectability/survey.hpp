#pragma once

#include <cstddef>
#include <vector>

#include <normscope/selectability/probability.hpp>
#include <normscope/selectability/reach.hpp>

namespace normscope::selectability {

/// What is known of a whole vocabulary: each token's answer, and the numbers at its edge.
struct Survey {
  std::vector<TokenReach> tokens{};
  std::vector<Probability> probabilities{};
  std::vector<std::size_t> refined{};  ///< whose probabilities were worked out, not read off the leads
  std::vector<bool> sharp{};           ///< whose largest lead was worked out
  std::size_t worked = 0;              ///< tokens that were worked on for that
  std::size_t wanted = 0;              ///< of the nearest
  /// What time or work did not suffice for.
  struct LeftOut {
    std::size_t tokens = 0;         ///< that were not decided
    std::size_t leads = 0;          ///< of tokens that might be among the nearest
    std::size_t probabilities = 0;  ///< that were wanted

    [[nodiscard]] bool nothing() const { return tokens == 0 && leads == 0 && probabilities == 0; }
  };
  LeftOut left_out{};

  /// Tokens decided with this answer, in order.
  [[nodiscard]] std::vector<std::size_t> with(convex::Answer answer) const;
  /// Up to `most` reachable tokens with the smallest largest lead, the smallest first; as far as it was
  /// worked out.
  [[nodiscard]] std::vector<std::size_t> nearest(std::size_t most) const;
  /// Up to `most` tokens with the smallest bound on their probability, the smallest first.
  [[nodiscard]] std::vector<std::size_t> least_probable(std::size_t most) const;
  /// Tokens that cannot win whatever the length of the hidden state.
  [[nodiscard]] std::size_t unargmaxable() const;
};

/// Which largest probabilities `finish` works out: none but those asked for, the extreme ones (all in a small
/// vocabulary), or all.
enum class Probabilities { quick, extremes, full };

struct SurveyOptions {
  /// Tokens nearest the edge, by their largest lead and by their largest probability, that are worked out.
  std::size_t nearest = 20;
  Probabilities probabilities = Probabilities::extremes;
  std::vector<std::size_t> asked{};  ///< tokens whose largest probability is worked out in any case
  double probability_gap = 1e-3;     ///< between the bounds of a log-probability
};

/// The edge of a vocabulary that `decide` is done with: the largest leads of the tokens that lead least, and
/// the largest probabilities wanted, as far as `options.until` lets. Goes on from what an interrupted call
/// left in the survey, to the same numbers. With a survey half done, `bound_by_leads` fills the rest.
/// Errors    Cancelled
/// Accuracy  (tests: Survey.NoTokenIsNearerThanThoseNamed, Survey.WhatIsLeftOutIsCountedAndWorkedOutLater)
/// Cost      tokens · width a round and token worked out
void finish(const Logits& logits, Survey& survey, const SurveyOptions& wanted, const ReachOptions& options);

/// Bounds every probability that was not worked out by its lead alone.
void bound_by_leads(Survey& survey);

}  // namespace normscope::selectability
