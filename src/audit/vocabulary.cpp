#include <normscope/audit/vocabulary.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/model/token_names.hpp>

namespace normscope::audit {

VocabularyHead vocabulary_head(const checkpoint::Checkpoint& checkpoint, const model::Model& model) {
  const auto unsupported = [&](const char* what) {
    return Error(ErrorCode::Unsupported, fmt::format("{}: {}", checkpoint.path().string(), what));
  };
  if (!model.vocabulary || !model.vocabulary->unembedding) {
    throw unsupported("has no map to a vocabulary, expected a language model's head");
  }
  const auto norm = std::find_if(model.norms.begin(), model.norms.end(), [&](const model::Norm& n) {
    return n.name == model.vocabulary->final_norm;
  });
  if (norm == model.norms.end()) {
    throw unsupported("its head reads no norm directly, expected one behind a final norm");
  }
  const model::Linear& map = *model.vocabulary->unembedding;
  const std::vector<double> weights = model::read_weight(checkpoint, map, 0, map.out);
  const std::vector<double> bias = model::read_bias(checkpoint, map);
  VocabularyHead head{.norm_name = norm->name,
                      .norm = model::read_norm(checkpoint, *norm),
                      .has_bias = !bias.empty(),
                      .tied = model.vocabulary->tied};
  head.logits =
      selectability::fold(head.norm, MatrixView<const double>(weights.data(), map.out, map.in), bias);
  return head;
}

VocabularyReach reach_of_vocabulary(const checkpoint::Checkpoint& checkpoint, const model::Model& model,
                                    double most_work, unsigned threads, const Progress& progress) {
  VocabularyReach result;
  if (!model.vocabulary || !model.vocabulary->unembedding) {
    result.refused = "the file holds no map to a vocabulary";
    return result;
  }
  const model::Linear& map = *model.vocabulary->unembedding;
  const double tokens = static_cast<double>(map.out);
  if (tokens * tokens * static_cast<double>(map.in) > most_work) {
    result.refused = fmt::format(
        "a vocabulary of {} x {} takes longer than a report should; `normscope reach` "
        "decides it",
        map.out, map.in);
    return result;
  }
  try {
    const VocabularyHead head = vocabulary_head(checkpoint, model);
    const selectability::ReachOptions options{.threads = threads, .progress = progress};
    selectability::Survey survey;
    selectability::decide(head.logits, survey.tokens, options);
    selectability::finish(head.logits, survey, selectability::Probabilities::extremes, {}, options);
    result.survey = std::move(survey);
  } catch (const Error& error) {
    // A head of another kind, or weights that are not finite: the rest of the file is still worth knowing.
    if (error.code() != ErrorCode::Unsupported && error.code() != ErrorCode::Argument) throw;
    result.refused = error.what();
    return result;
  }
  const auto file = model::find_token_names(checkpoint.files().front().parent_path());
  if (file) result.names = model::read_token_names(*file, map.out);
  return result;
}

std::string token_name(const std::vector<std::string>& names, std::size_t token) {
  if (token >= names.size() || names[token].empty()) return fmt::format("token {}", token);
  return fmt::format("token {} \"{}\"", token, names[token]);
}

}  // namespace normscope::audit
