#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/selectability/survey.hpp>
#include <normscope/selectability/vocabulary.hpp>
#include <normscope/verify/result.hpp>

namespace normscope::results {

/// Parts of a result of `reach` besides the survey.
struct ReachDetails {
  std::string source;                     ///< name of the model, or of the unembedding
  const std::vector<std::string>& names;  ///< of tokens; empty without a known vocabulary
  const std::vector<std::string>& notes;  ///< assumptions and unknowns of the model's description
  const verify::Inputs& inputs;
  double tolerance = 1e-12;
  std::string folder{};  ///< of the certificates, or empty
  bool complete = true;  ///< false if the search was interrupted
};

/// Which tokens a vocabulary head can output, schema "normscope.reach/1" (docs/schemas/reach.schema.json).
[[nodiscard]] nlohmann::ordered_json reach(const selectability::VocabularyHead& head,
                                           const selectability::Survey& results, const ReachDetails& details);

}  // namespace normscope::results
