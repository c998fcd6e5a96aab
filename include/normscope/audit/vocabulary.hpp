#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/progress.hpp>
#include <normscope/model/model.hpp>
#include <normscope/selectability/survey.hpp>

/// Which tokens a checkpoint can output: its vocabulary after the final norm.
namespace normscope::audit {

/// The map from the final norm's output to logits, the norm folded in.
struct VocabularyHead {
  std::string norm_name;
  NormSpec norm{};
  bool has_bias = false;
  bool tied = false;
  selectability::Logits logits{};  ///< before the cap, `logit_scale` in them
  double logit_scale = 1.0;
  double soft_cap = 0.0;  ///< C of C tanh(logit/C), 0 without one
  /// The mean of the logits over all tokens, which `logits` leave out and a cap needs: common · u + offset.
  std::vector<double> common{};
  double common_offset = 0.0;
  /// Per token a bound of Σ_j |W_ij h_j| + |c_i| over the ball, `logit_scale` in it: the sizes that a model's
  /// own rounding of the logit is relative to.
  std::vector<double> sizes{};
};

/// Errors    Unsupported, naming the file, for a model without unembedding, whose head reads no norm, or that
///           does to its logits what is not modelled ("not modelled: FIELD: value"); as `model::read_weight`,
///           `selectability::fold`
[[nodiscard]] VocabularyHead vocabulary_head(const checkpoint::Checkpoint& checkpoint,
                                             const model::Model& model);

/// Replaces the bounds of the largest probabilities, which are of logits without a cap, by bounds under
/// `head.soft_cap`; answers and leads stay, since a cap changes no order. With m = C tanh(l/C), n tokens and
/// T <= the sum of e^(l_j - l_i) over the others j, anywhere in the ball:
///   p <= 1/(1 + T)    for T <= 1,   p <= 1/(1 + T^s)  else, with s the least slope of the cap where l_j >
///   l_i, p <= 1/(1 + e^d)  for d the least that the cap leaves of log(T/(n - 1)), or of the lead of another
///   token, p <= 1/(1 + sum of e^(least m_j - largest m_i));
/// from below the probability at points of the ball, or what the cap leaves of a lead.
/// Accuracy  proved (test: SoftCap.BoundsHoldAgainstAscent)
/// Cost      tokens · width, and that for each of up to 60 points and refined token where that is 1e11 or
/// less
///
/// Requires  a survey that is finished, or bounded by its leads; soft_cap > 0
void cap_probabilities(const VocabularyHead& head, selectability::Survey& survey, unsigned threads = 0);

/// Which tokens of a whole vocabulary are reachable, with names if a vocabulary file lies beside the weights;
/// or why that is not known.
struct VocabularyReach {
  std::optional<selectability::Survey> survey{};
  /// Tokens with the same weights and bias, whose logits are always equal; groups of two or more.
  std::vector<std::vector<std::size_t>> ties{};
  std::vector<std::string> names{};  ///< empty where no file names tokens
  std::string refused{};             ///< empty where `survey` is there
};

/// Tokens² · width that a report spends on its vocabulary unless asked for more: GPT-2 small's and its like.
inline constexpr double vocabulary_work = 3e12;

struct VocabularyOptions {
  /// Tokens² · width up to which the vocabulary is surveyed at all.
  double most_work = vocabulary_work;
  /// Seconds after which no further tokens are started. The product of all tokens with all is not
  /// interrupted.
  double seconds = std::numeric_limits<double>::infinity();
  /// Where true, the vocabulary is left out.
  bool skip = false;
};

/// Surveys the vocabulary of `model`, unless that takes more than `options.most_work`. Tokens that the
/// product of all with all leaves open may take another fifth of that; `Survey::left_out` counts the tokens
/// for which work or time do not suffice.
///
/// Errors    as `model::read_token_names`; Cancelled
/// Cost      as `selectability::decide`, `selectability::finish`
[[nodiscard]] VocabularyReach reach_of_vocabulary(const checkpoint::Checkpoint& checkpoint,
                                                  const model::Model& model, const VocabularyOptions& options,
                                                  unsigned threads = 0, const Progress& progress = {});

/// `tokens` that are in none of `ties`, in order.
[[nodiscard]] std::vector<std::size_t> without_ties(std::vector<std::size_t> tokens,
                                                    const std::vector<std::vector<std::size_t>>& ties);

/// `token 17`, or `token 17 "the"`.
[[nodiscard]] std::string token_name(const std::vector<std::string>& names, std::size_t token);

}  // namespace normscope::audit
