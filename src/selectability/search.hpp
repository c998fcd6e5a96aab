#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/snapshot.hpp>
#include <normscope/selectability/select.hpp>

#include "nearest.hpp"
#include "own_direction.hpp"
#include "score_queries.hpp"

namespace normscope::selectability {

/// The two parts of a search: all keys by their own direction, then the remaining ones in blocks.
struct Search::Parts {
  Parts(MatrixView<const double> keys, const Options& options);

  Options options;
  KeySet key_set;
  OwnDirection own;
  std::vector<Verdict> verdicts;    ///< one per row
  std::vector<std::size_t> open{};  ///< places not decided by their own direction
  std::size_t block;                ///< undecided places per step
  std::size_t blocks_done = 0;
  Constraints front;  ///< keys known to be selectable: most violated constraints come from them
  std::optional<Span> span{};
  /// The results beyond the keys' own directions, which a saved state contains.
  struct Searched {
    std::uint64_t blocks = 0;
    std::vector<std::size_t> rows{};  ///< rows of the decided places, in order
    std::vector<Verdict> verdicts{};
    std::vector<std::size_t> front{};
  };
  std::optional<Searched> restored{};  ///< until the own directions are computed
  std::string restored_from{};         ///< for messages

  [[nodiscard]] std::size_t blocks() const;
  /// Number of undecided places that have been searched.
  [[nodiscard]] std::size_t searched() const;
  void collect();
  [[nodiscard]] Searched found() const;
  /// Uses restored results instead of searching again.
  ///
  /// Errors    Format if they are not of these keys
  void use_restored();
  [[nodiscard]] std::size_t first_unproved(const Searched& searched) const;
  [[nodiscard]] const Digest& inputs() const;
  [[nodiscard]] Selection selection();
  void advance();

 private:
  struct KeySearch;
  mutable std::optional<Digest> fingerprint{};  ///< of keys and options, on first request
  void run_block(std::vector<KeySearch> searches);
  void evaluate(std::vector<KeySearch*>& searches);
  void score(std::vector<KeySearch*>& searches, const Constraints& constraints, bool proves);
  void next_stage(KeySearch& search);
  void select(std::size_t place, Proof proof, double margin, std::vector<double> query);
  void mark_selectable(const KeySearch& search, double margin);
  void solve_working_set(KeySearch& search);
  void next_query(KeySearch& search);
};

}  // namespace normscope::selectability
