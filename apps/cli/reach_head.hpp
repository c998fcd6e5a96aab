#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/selectability/logits.hpp>

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

/// A head as it is decided about.
struct ReachHead {
  std::string source;     ///< what was named on the command line
  std::string norm_name;  ///< empty where it was given as arrays
  NormSpec norm{};
  bool has_bias = false;
  bool tied = false;
  selectability::Logits logits{};
  std::vector<std::string> names{};  ///< of tokens; empty where no vocabulary is known

  /// `token 17`, or `token 17 "the"`, fit for a terminal.
  [[nodiscard]] std::string shown(std::size_t token) const;
};

/// Reads the head and folds the norm into it. Outputs must replace none of its files.
/// Errors    as the readers; Unsupported for a model whose head reads no norm
[[nodiscard]] ReachHead read_head(const HeadOptions& options, const std::vector<std::string>& outputs);

}  // namespace normscope::cli
