#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <normscope/core/sha256.hpp>
#include <normscope/selectability/survey.hpp>

namespace normscope::cli {

/// What an interrupted `reach` had decided, kept in a snapshot that belongs to its logits and tolerance: each
/// decided token with all that proves its answer and bounds, whose leads were worked out, and the points that
/// prove largest probabilities. Tokens that lead where their own row points need no proof kept: one product
/// settles them all again. Going on from it leads to the same bytes.
class ReachState {
 public:
  /// No file for an empty name. Requires  `logits` outlive the state
  ReachState(std::filesystem::path path, const selectability::Logits& logits,
             selectability::ReachOptions options, double probability_gap);

  /// Whether there is a file to go on from.
  [[nodiscard]] bool exists() const;
  /// Errors    Io; Format for a file that is none, is damaged, or holds a proof that the logits do not bear
  ///           out; Argument for one that belongs to other logits
  [[nodiscard]] selectability::Survey load() const;
  /// Nothing where there is no file's name. Errors    Io
  void save(const selectability::Survey& survey) const;

 private:
  std::filesystem::path path_;
  const selectability::Logits& logits_;
  selectability::ReachOptions options_;
  double probability_gap_;
  Digest fingerprint_{};
};

}  // namespace normscope::cli
