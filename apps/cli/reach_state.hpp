#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <normscope/core/snapshot.hpp>
#include <normscope/selectability/reach.hpp>

namespace normscope::cli {

/// The state of an interrupted `reach`, saved in a snapshot for its logits and tolerance: the proofs of all
/// decided tokens' answers and bounds, the tokens whose leads were computed, and the points that prove
/// largest probabilities. Tokens that lead at their own direction are not saved, because one product decides
/// them again. A resumed run writes the same bytes. Of a team, the first member reads and writes the file.
class ReachState {
 public:
  /// No file if the name is empty.
  ///
  /// Requires  `logits` outlive the state
  ReachState(std::filesystem::path path, const selectability::Logits& logits,
             selectability::ReachOptions options, double probability_gap);

  /// Whether there is a file to resume from.
  [[nodiscard]] bool exists() const;
  /// Errors    Io; Format for a file that is not a state, is damaged, or has a proof that does not hold for
  ///           the logits; Argument for one of other logits
  [[nodiscard]] selectability::Survey load() const;
  /// Does nothing if there is no file name.
  ///
  /// Errors    Io
  void save(const selectability::Survey& survey) const;

 private:
  std::filesystem::path path_;
  const selectability::Logits& logits_;
  selectability::ReachOptions options_;
  double probability_gap_;
  Digest fingerprint_{};
};

}  // namespace normscope::cli
