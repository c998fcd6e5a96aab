#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/activations/observer.hpp>
#include <normscope/audit/context_keys.hpp>
#include <normscope/audit/next_tokens.hpp>
#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/progress.hpp>
#include <normscope/model/model.hpp>

/// What the rows that entered norms imply for the model's heads and logits.
namespace normscope::activations {

/// A norm that was watched.
struct WatchedNorm {
  std::string name;  ///< of the module
  const Observer& observer;
};

struct InModel {
  const model::Model* model = nullptr;      ///< the description used; it must outlive this
  std::vector<audit::ContextKeys> heads{};  ///< those that were measured
  std::string final_norm{};                 ///< the norm whose rows `next` is about
  std::optional<audit::NextTokens> next{};
  std::string next_refused{};         ///< why there is none; empty otherwise
  std::vector<std::string> tokens{};  ///< names by id; empty where no file names them
};

struct InModelOptions {
  audit::ContextKeyOptions heads{};
  audit::NextTokenOptions next{};
};

/// Whether the module `name` is the norm that `model` calls `norm`: the names are equal, or one is the other
/// behind a prefix that ends in a dot, as a wrapper of the model adds.
[[nodiscard]] bool names_norm(std::string_view name, std::string_view norm);

/// Selectable keys and next tokens for the kept contexts and rows of `watched`, which are norms of `model`.
///
/// Errors    as `model::read_weight`, `model::read_token_names`; Cancelled
///
/// Cost      as `audit::selectable_context_keys` and `audit::next_tokens`
[[nodiscard]] InModel in_model(const checkpoint::Checkpoint& checkpoint, const model::Model& model,
                               const std::vector<WatchedNorm>& watched, const InModelOptions& options = {},
                               const Progress& progress = {});

}  // namespace normscope::activations
