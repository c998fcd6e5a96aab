#pragma once

#include <cstddef>
#include <vector>

#include <normscope/selectability/probability.hpp>
#include <normscope/selectability/reach.hpp>

namespace normscope::selectability {

/// What is known of a whole vocabulary: each token's answer, its largest lead and its largest probability.
struct Survey {
  std::vector<TokenReach> tokens{};
  std::vector<Probability> probabilities{};
  std::vector<std::size_t> refined{};  ///< tokens whose probabilities were computed, not only bounded
  std::vector<bool> sharp{};           ///< tokens whose largest lead was computed
  std::size_t worked = 0;              ///< tokens processed for that
  std::size_t wanted = 0;              ///< number of nearest tokens requested
  /// Work that was skipped because work ran out, as numbers of tokens.
  struct LeftOut {
    std::size_t tokens = 0;         ///< tokens that are not decided
    std::size_t leads = 0;          ///< tokens that might be among the nearest
    std::size_t probabilities = 0;  ///< tokens whose probability was requested

    [[nodiscard]] bool nothing() const { return tokens == 0 && leads == 0 && probabilities == 0; }
  };
  LeftOut left_out{};

  /// Tokens decided with this answer, in order.
  [[nodiscard]] std::vector<std::size_t> with(proof::Answer answer) const;
  /// Up to `most` reachable tokens with the smallest largest lead, in the order of its upper bound, as far as
  /// leads were computed.
  [[nodiscard]] std::vector<std::size_t> nearest(std::size_t most) const;
  /// Up to `most` tokens with the smallest bound on their probability, the smallest first.
  [[nodiscard]] std::vector<std::size_t> least_probable(std::size_t most) const;
  /// Number of tokens that cannot have the largest logit for a hidden state of any length.
  [[nodiscard]] std::size_t unargmaxable() const;
};

/// Which largest probabilities `finish` computes: only those requested, the extreme ones (all in a small
/// vocabulary), or all.
enum class Probabilities { quick, extremes, full };

struct SurveyOptions {
  /// Number of tokens with the smallest largest lead, and with the smallest largest probability, to compute.
  std::size_t nearest = 20;
  Probabilities probabilities = Probabilities::extremes;
  std::vector<std::size_t> asked{};  ///< tokens whose largest probability is always computed
  double probability_gap = 1e-3;     ///< gap between the bounds of a log-probability
};

/// After `decide`: computes the largest leads of the tokens that lead least, and the largest probabilities
/// requested, within `options.work`. Continues from what an interrupted call left in the survey, to the same
/// numbers. In an unfinished survey, `bound_by_leads` fills in the rest.
///
/// Errors    Cancelled
///
/// Accuracy  (tests: Survey.NoTokenIsNearerThanThoseNamed, Survey.LeftOutWorkIsCountedAndCompletedLater)
///
/// Cost      tokens · width per round and token computed
void finish(const Logits& logits, Survey& survey, const SurveyOptions& wanted, const ReachOptions& options);

/// Bounds by its lead alone every probability that was not computed.
void bound_by_leads(Survey& survey);

}  // namespace normscope::selectability
