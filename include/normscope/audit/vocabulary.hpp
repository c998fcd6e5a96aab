#pragma once

#include <optional>
#include <string>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/progress.hpp>
#include <normscope/model/model.hpp>
#include <normscope/selectability/survey.hpp>

/// What a checkpoint can say: its vocabulary behind the final norm.
namespace normscope::audit {

/// The map from the final norm's output to logits, the norm folded in.
struct VocabularyHead {
  std::string norm_name;
  NormSpec norm{};
  bool has_bias = false;
  bool tied = false;
  selectability::Logits logits{};
};

/// Errors    Unsupported, naming the file, for a model without unembedding or whose head reads no norm;
///           as `model::read_weight`, `selectability::fold`
[[nodiscard]] VocabularyHead vocabulary_head(const checkpoint::Checkpoint& checkpoint,
                                             const model::Model& model);

/// Of a whole vocabulary: who can win, with names where a vocabulary file lies beside the weights; or why
/// that is not known.
struct VocabularyReach {
  std::optional<selectability::Survey> survey{};
  std::vector<std::string> names{};  ///< empty where no file names tokens
  std::string refused{};             ///< empty where `survey` is there
};

/// Tokens² · width that a report spends on its vocabulary unless asked for more: GPT-2 small's and its like.
inline constexpr double vocabulary_work = 3e12;

/// Surveys the vocabulary of `model`, unless that takes more than `most_work`.
/// Errors    as `model::read_token_names`; Cancelled
/// Cost      as `selectability::decide`, `selectability::finish`
[[nodiscard]] VocabularyReach reach_of_vocabulary(const checkpoint::Checkpoint& checkpoint,
                                                  const model::Model& model, double most_work,
                                                  unsigned threads = 0, const Progress& progress = {});

/// `token 17`, or `token 17 "the"`.
[[nodiscard]] std::string token_name(const std::vector<std::string>& names, std::size_t token);

}  // namespace normscope::audit
