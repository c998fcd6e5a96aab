#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <normscope/selectability/vocabulary.hpp>
#include <normscope/verify/verify.hpp>

#include "command.hpp"

namespace normscope::cli {

/// The command-line form of a vocabulary head: a model, or its arrays.
struct HeadOptions {
  ModelName model;
  std::string unembedding;
  std::string unembedding_bias;
  std::string names;
  NormOptions norm;
};

/// A vocabulary head to be analysed; its norm has no name if it was given as arrays.
struct ReachHead : selectability::VocabularyHead {
  std::string source;                ///< the command-line argument
  std::vector<std::string> names{};  ///< of tokens; empty without a known vocabulary
  std::vector<std::string> notes{};  ///< assumptions and unknowns of the model's description
  verify::Inputs inputs{};           ///< if requested

  /// `token 17`, or `token 17 "the"`, safe for a terminal.
  [[nodiscard]] std::string shown(std::size_t token) const;
};

/// Reads the head and folds the norm into it. Outputs must not replace any of its files. With `describe`,
/// records the inputs.
///
/// Errors    as the readers; Unsupported for a model whose head does not read a norm
[[nodiscard]] ReachHead read_head(const HeadOptions& options, const std::vector<std::string>& outputs,
                                  bool describe, unsigned threads);

}  // namespace normscope::cli
