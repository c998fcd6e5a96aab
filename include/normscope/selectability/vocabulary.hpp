#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/selectability/reach.hpp>

/// Which tokens a checkpoint can output: its vocabulary after the final norm.
namespace normscope::selectability {

/// The map from the final norm's output to logits, the norm folded in.
struct VocabularyHead {
  std::string norm_name{};
  NormSpec norm{};
  bool has_bias = false;
  bool tied = false;
  Logits logits{};  ///< before the cap, `logit_scale` in them
  double logit_scale = 1.0;
  double soft_cap = 0.0;  ///< C of C tanh(logit/C), 0 without one
  /// The mean of the logits over all tokens, which `logits` leave out and a cap needs: common · u + offset.
  std::vector<double> common{};
  double common_offset = 0.0;
  /// Per token a bound of logit_scale (Σ_j |W_ij h_j| + |c_i|) over the ball; the rounding of the model's own
  /// logits is relative to these sizes.
  std::vector<double> sizes{};
};

/// The head of a model that has one.
///
/// Errors    Unsupported, naming the file, for a model without unembedding, whose head reads no norm, or
///           whose configuration changes logits in a way that is not modelled ("not modelled: FIELD: value");
///           as `models::read_weight`, `fold`
[[nodiscard]] VocabularyHead vocabulary_head(const files::Checkpoint& checkpoint, const models::Model& model);

/// The head of a norm and an unembedding (tokens × width, with a bias or without) that are not in a file.
///
/// Errors    as `fold`
[[nodiscard]] VocabularyHead vocabulary_head(NormSpec norm, MatrixView<const double> unembedding,
                                             const std::vector<double>& bias, double logit_scale = 1.0,
                                             double soft_cap = 0.0);

/// Replaces the bounds of the largest probabilities, which are about logits l without a cap, by bounds for
/// m = C tanh(l/C), C = `head.soft_cap`. Answers and leads stay, since a cap preserves the order of logits.
/// Upper bounds, with n tokens and T the minimum over the ball of Σ_j e^(l_j − l_i) over the other tokens j:
///   p <= 1/(1 + T)    if T <= 1
///   p <= 1/(1 + T^s)  else, s the least slope of the cap over the range in which some l_j exceeds l_i
///   p <= 1/(1 + e^d)  d the least value after the cap of log(T/(n − 1)), or of the lead of another token
///   p <= 1/(1 + Σ_j e^(least m_j − largest m_i))
/// Lower bounds are the probability at points of the ball, or that of the lead after the cap.
///
/// Requires  a survey that is finished, or bounded by its leads; soft_cap > 0
///
/// Accuracy  proved (test: SoftCap.BoundsHoldAgainstAscent)
///
/// Cost      tokens · width; the same again for each refined token and each of up to 60 points, if that is at
///           most 1e11 in all
void cap_probabilities(const VocabularyHead& head, Survey& survey, unsigned threads = 0);

/// Which tokens of a whole vocabulary are reachable, with names if a vocabulary file lies beside the weights;
/// or why that is not known.
struct VocabularyReach {
  std::optional<Survey> survey{};
  /// Tokens with the same weights and bias, whose logits are always equal; groups of two or more.
  std::vector<std::vector<std::size_t>> ties{};
  std::vector<std::string> names{};  ///< empty where no file names tokens
  std::string refused{};             ///< empty where `survey` is there
  bool left_out = false;             ///< whether it is refused because `most_work` does not suffice
};

/// Tokens² · width that a report spends on its vocabulary by default: that of GPT-2 small suffices.
inline constexpr double vocabulary_work = 3e12;

/// Multiplications that a report spends by default on heads, on ranges, and on tokens that the product of all
/// tokens leaves undecided, each.
inline constexpr double report_budget = 40.0 * budget_unit;

/// Tokens² · width of a budget: as many as of the default one in proportion, and a fortieth of that, which no
/// budget refuses.
[[nodiscard]] constexpr double work_within(double budget) {
  return vocabulary_work * (budget / report_budget + 1.0 / 40.0);
}

struct VocabularyOptions {
  /// Tokens² · width up to which the vocabulary is surveyed at all.
  double most_work = vocabulary_work;
  /// `ReachOptions::work` of the tokens that the product of all tokens leaves undecided, and
  /// of the extremes.
  double budget = report_budget;
  /// Whether the vocabulary is left out.
  bool skip = false;
};

/// Surveys the vocabulary of `model`, unless that takes more than `options.most_work`. Tokens that the
/// product of all tokens with all tokens leaves undecided take up to `options.budget`; `Survey::left_out`
/// counts the tokens for which it does not suffice.
///
/// Errors    as `models::read_token_names`; Cancelled
///
/// Cost      as `decide`, `finish`
[[nodiscard]] VocabularyReach reach_of_vocabulary(const files::Checkpoint& checkpoint,
                                                  const models::Model& model,
                                                  const VocabularyOptions& options, unsigned threads = 0,
                                                  const Progress& progress = {});

/// `tokens` that are in none of `ties`, in order.
[[nodiscard]] std::vector<std::size_t> without_ties(std::vector<std::size_t> tokens,
                                                    const std::vector<std::vector<std::size_t>>& ties);

/// `token 17`, or `token 17 "the"`.
[[nodiscard]] std::string token_name(const std::vector<std::string>& names, std::size_t token);

}  // namespace normscope::selectability
