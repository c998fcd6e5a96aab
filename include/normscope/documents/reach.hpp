#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/audit/vocabulary.hpp>
#include <normscope/certificates/result.hpp>
#include <normscope/selectability/survey.hpp>

namespace normscope::documents {

/// Parts of a result of `reach` besides the survey.
struct ReachDetails {
  std::string source;                     ///< name of the model, or of the unembedding
  const std::vector<std::string>& names;  ///< of tokens; empty without a known vocabulary
  const std::vector<std::string>& notes;  ///< assumptions and unknowns of the model's description
  const certificates::Inputs& inputs;
  double tolerance = 1e-12;
  std::string folder{};  ///< of the certificates, or empty
  bool complete = true;  ///< false if the search was interrupted
};

/// Which tokens a vocabulary head can output, schema "normscope.reach/1" (docs/schemas/reach.schema.json).
[[nodiscard]] nlohmann::ordered_json reach(const audit::VocabularyHead& head,
                                           const selectability::Survey& results, const ReachDetails& details);

}  // namespace normscope::documents
