#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <normscope/audit/vocabulary.hpp>
#include <normscope/certificates/result.hpp>

#include "command.hpp"

namespace normscope::cli {

/// How the command line names a vocabulary head: a model, or its arrays.
struct HeadOptions {
  std::string model;
  std::string unembedding;
  std::string unembedding_bias;
  std::string names;
  NormOptions norm;
};

/// A head as it is decided about; its norm has no name where it was given as arrays.
struct ReachHead : audit::VocabularyHead {
  std::string source;                ///< what was named on the command line
  std::vector<std::string> names{};  ///< of tokens; empty where no vocabulary is known
  std::vector<std::string> notes{};  ///< what the model's description had to assume, or could not tell
  certificates::Inputs inputs{};     ///< where they were asked for

  /// `token 17`, or `token 17 "the"`, fit for a terminal.
  [[nodiscard]] std::string shown(std::size_t token) const;
};

/// Reads the head and folds the norm into it. Outputs must replace none of its files. With `describe`, takes
/// down what it was made from.
/// Errors    as the readers; Unsupported for a model whose head reads no norm
[[nodiscard]] ReachHead read_head(const HeadOptions& options, const std::vector<std::string>& outputs,
                                  bool describe, unsigned threads);

}  // namespace normscope::cli
