#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/verify/verify.hpp>

namespace normscope::verify {

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
  /// Errors    as `models::read_token_names`
  void read_names(const files::Checkpoint& checkpoint);
  /// The arrays that a `reach` result states: unembedding, its bias, gain and bias of the norm, if present.
  [[nodiscard]] std::vector<InputArray> arrays(unsigned threads = 0) const;
};

/// Errors    Unsupported for a model whose logits read no norm, or are not modelled
[[nodiscard]] ModelHead read_model_head(const files::Checkpoint& checkpoint, const models::Model& model);

/// y = W x + b, row-major, and the norm of the queries' or keys' own that follows, if any.
struct HeadMap {
  std::vector<double> weight{};  ///< head_dim × what it reads
  std::vector<double> bias{};    ///< head_dim, or none
  std::optional<NormSpec> own{};
  std::string own_name{};
};

/// An attention head and the norm that it reads, in the passes in which it reads that one.
struct AttentionHead {
  models::Head head{};
  std::string norm_name{};
  std::string pass{};     ///< "first" or "later" where passes read different norms, else empty
  std::string refused{};  ///< why its scores cannot be worked out, or empty
  NormSpec norm{};
  HeadMap query{}, key{};
  /// The map between the norm and both (in × norm.width, in), or none.
  std::optional<HeadMap> between{};
};

/// Every head of a checkpoint with each norm that it reads, in the order of a `heads` result, read anew from
/// the checkpoint one at a time.
class ModelHeads {
 public:
  ModelHeads(const files::Checkpoint& checkpoint, const models::Model& model);

  [[nodiscard]] const models::Model& model() const { return model_; }
  [[nodiscard]] std::size_t size() const { return readings_.size(); }
  /// Errors    as `models::read_weight`
  [[nodiscard]] AttentionHead read(std::size_t index) const;
  /// Weights, biases and norms of all heads as they are used, which a result with certificates states.
  [[nodiscard]] std::vector<InputArray> arrays(unsigned threads = 0) const;

 private:
  struct Reading {
    std::size_t head = 0;
    std::string norm{};
    std::string pass{};
  };
  const files::Checkpoint& checkpoint_;
  const models::Model& model_;
  std::vector<Reading> readings_{};
};

/// Checks every statement of a `heads` result that has certificates.
///
/// Errors    Format, Shape; Cancelled; as `ModelHeads::read`
///
/// Accuracy  as `verify_select` (tests: VerifyHeads.GoodResultsPass, VerifyHeads.ForgedOnesFail)
///
/// Cost      width head_dim² operations in double-double a head, and head_dim³ a distance where those are
///           enumerated
[[nodiscard]] Verification verify_heads(const Result& result, const ModelHeads& heads,
                                        const VerifyOptions& options = {});

}  // namespace normscope::verify
