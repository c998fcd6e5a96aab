#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <normscope/core/progress.hpp>
#include <normscope/core/view.hpp>
#include <normscope/selectability/vocabulary.hpp>

/// The distribution of the next token for rows that entered the final norm when a model ran.
namespace normscope::analysis {

/// A token that is among the likeliest after some row.
struct NextToken {
  std::size_t token = 0;
  std::size_t rows = 0;   ///< rows with it among the likeliest
  std::size_t first = 0;  ///< rows where it is the likeliest
  /// Whether it can have the largest logit at all; undecided if the budget did not suffice.
  proof::Answer answer = proof::Answer::undecided;
  double lead_at_most = std::numeric_limits<double>::infinity();  ///< proved, over every row
};

struct NextTokens {
  std::size_t rows = 0;
  /// KL(p ‖ q) in nats, p the model's distribution at a row and q that for the row divided by the mean
  /// deviation instead of its own.
  double mean_divergence = 0.0, median_divergence = 0.0, most_divergence = 0.0;
  double changed = 0.0;             ///< share of the rows whose likeliest token changes with it
  std::vector<NextToken> tokens{};  ///< the most frequent first
  std::size_t left_out = 0;         ///< tokens beyond `NextTokenOptions::most_tokens`
};

struct NextTokenOptions {
  std::size_t top = 10;           ///< tokens a row that count as likeliest
  std::size_t most_rows = 64;     ///< rows that are measured, spread evenly over those given
  std::size_t most_tokens = 256;  ///< tokens whose reachability is decided
  double budget = std::numeric_limits<double>::infinity();  ///< `selectability::ReachOptions::work`
  unsigned threads = 0;
};

/// The logits of `rows`, which entered the final norm, with their own scale and with `mean_sigma` in its
/// place, and whether the likeliest tokens are reachable.
///
/// Shapes    rows (any, width)
///
/// Errors    Shape; Cancelled
///
/// Accuracy  divergences 1e-9 relative, or 1e-13 absolute; reachability is proved, as by
///           `selectability::decide` (tests: test_the_divergence_is_that_of_the_definition,
///           test_likely_tokens_are_reachable_as_reach_says)
///
/// Cost      rows · tokens · width, and tokens · width for each round and likely token
[[nodiscard]] NextTokens next_tokens(const selectability::VocabularyHead& head, MatrixView<const double> rows,
                                     double mean_sigma, const NextTokenOptions& options = {},
                                     const Progress& progress = {});

}  // namespace normscope::analysis
