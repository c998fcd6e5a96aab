#include <normscope/analysis/in_model.hpp>

#include <utility>

#include <normscope/core/error.hpp>
#include <normscope/models/token_names.hpp>
#include <normscope/selectability/vocabulary.hpp>

namespace normscope::analysis {
namespace {

/// The norm of the model that corresponds to the module; null if there are none or several.
const models::Norm* norm_of(const models::Model& model, const std::string& name) {
  const models::Norm* found = nullptr;
  for (const models::Norm& norm : model.norms) {
    if (norm.name == name) return &norm;
    if (!names_norm(name, norm.name)) continue;
    if (found != nullptr) return nullptr;
    found = &norm;
  }
  return found;
}

void add_next_tokens(InModel& result, const files::Checkpoint& checkpoint, const models::Model& model,
                     const Observer* final_norm, const InModelOptions& options, const Progress& progress) {
  if (final_norm == nullptr) {
    result.next_refused = "no norm that the unembedding reads was watched";
    return;
  }
  try {
    const selectability::VocabularyHead head = selectability::vocabulary_head(checkpoint, model);
    result.next = next_tokens(head, final_norm->sample(), final_norm->mean_sigma(), options.next, progress);
    const auto file = models::find_token_names(checkpoint.files().front().parent_path());
    if (file) result.tokens = models::read_token_names(*file, head.logits.tokens);
  } catch (const Error& error) {
    // The head is not modelled, or its weights are not finite: the results about norms are still returned.
    if (error.code() != ErrorCode::Unsupported && error.code() != ErrorCode::Argument) throw;
    result.next_refused = error.what();
  }
}

}  // namespace

bool names_norm(std::string_view name, std::string_view norm) {
  if (name.size() < norm.size()) std::swap(name, norm);
  if (norm.empty() || !name.ends_with(norm)) return false;
  return name.size() == norm.size() || name[name.size() - norm.size() - 1] == '.';
}

InModel in_model(const files::Checkpoint& checkpoint, const models::Model& model,
                 const std::vector<WatchedNorm>& watched, const InModelOptions& options,
                 const Progress& progress) {
  InModel result{.model = &model};
  if (model.vocabulary) result.final_norm = model.vocabulary->final_norm;
  std::vector<NormContexts> contexts;
  const Observer* final_norm = nullptr;
  for (const WatchedNorm& one : watched) {
    const models::Norm* const norm = norm_of(model, one.name);
    if (norm == nullptr) continue;
    contexts.push_back({norm->name, one.observer.contexts()});
    if (norm->name == result.final_norm) final_norm = &one.observer;
  }
  result.heads = selectable_context_keys(checkpoint, model, contexts, options.heads, progress);
  add_next_tokens(result, checkpoint, model, final_norm, options, progress);
  return result;
}

}  // namespace normscope::analysis
