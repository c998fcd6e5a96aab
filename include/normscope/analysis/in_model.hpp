#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/analysis/context_keys.hpp>
#include <normscope/analysis/next_tokens.hpp>
#include <normscope/analysis/observer.hpp>
#include <normscope/core/progress.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

/// What the rows that entered norms imply for the model's heads and logits.
namespace normscope::analysis {

/// A norm that was watched.
struct WatchedNorm {
  std::string name;  ///< of the module
  const Observer& observer;
};

struct InModel {
  const models::Model* model = nullptr;  ///< the description used; it must outlive this
  std::vector<ContextKeys> heads{};      ///< those that were measured
  std::string final_norm{};              ///< the norm whose rows `next` is about
  std::optional<NextTokens> next{};
  std::string next_refused{};         ///< why there is none; empty otherwise
  std::vector<std::string> tokens{};  ///< names by id; empty where no file names them
};

struct InModelOptions {
  ContextKeyOptions heads{};
  NextTokenOptions next{};
};

/// Whether the module `name` is the norm that `model` calls `norm`: the names are equal, or one is the other
/// behind a prefix that ends in a dot, as a wrapper of the model adds.
[[nodiscard]] bool names_norm(std::string_view name, std::string_view norm);

/// Selectable keys and next tokens for the kept contexts and rows of `watched`, which are norms of `model`.
///
/// Errors    as `models::read_weight`, `models::read_token_names`; Cancelled
///
/// Cost      as `selectable_context_keys` and `next_tokens`
[[nodiscard]] InModel in_model(const files::Checkpoint& checkpoint, const models::Model& model,
                               const std::vector<WatchedNorm>& watched, const InModelOptions& options = {},
                               const Progress& progress = {});

}  // namespace normscope::analysis
