#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <normscope/certificates/verify.hpp>
#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

namespace normscope::certificates {

/// A model's vocabulary head with its own values, read from the checkpoint anew.
struct ModelHead {
  NormSpec norm{};
  std::vector<double> unembedding{};  ///< tokens × norm.width
  std::vector<double> bias{};         ///< tokens, or none
  double scale = 1.0;
  double soft_cap = 0.0;
  std::size_t tokens = 0;
  HeadFacts facts{};

  [[nodiscard]] VocabularyHead head() const {
    return {norm, {unembedding.data(), tokens, norm.width}, bias, scale, soft_cap, facts};
  }
  /// Reads the names of tokens from a file beside the model, if there is one.
  ///
  /// Errors    as `model::read_token_names`
  void read_names(const checkpoint::Checkpoint& checkpoint);
  /// The arrays that a `reach` result states: unembedding, its bias, gain and bias of the norm, if present.
  [[nodiscard]] std::vector<InputArray> arrays(unsigned threads = 0) const;
};

/// Errors    Unsupported for a model whose logits read no norm, or are not modelled
[[nodiscard]] ModelHead read_model_head(const checkpoint::Checkpoint& checkpoint, const model::Model& model);

}  // namespace normscope::certificates
