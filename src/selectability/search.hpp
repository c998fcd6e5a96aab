#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/sha256.hpp>
#include <normscope/selectability/select.hpp>

#include "challenge.hpp"
#include "nearest.hpp"
#include "own_direction.hpp"
#include "scaled_columns.hpp"
#include "scaled_keys.hpp"

namespace normscope::selectability {

/// The parts of a search: all keys by their own direction, then, a chunk at a time, what that leaves.
struct Search::Parts {
  Parts(MatrixView<const double> keys, const Options& options);

  Options options;
  MatrixView<const double> given;
  std::optional<ScaledColumns> columns;  ///< where their columns differ in size
  std::optional<ScaledKeys> scaled;      ///< or else where the keys cannot be multiplied as they are
  Cloud cloud;
  OwnDirection own;
  std::vector<Verdict> verdicts;    ///< one a row
  std::vector<std::size_t> open{};  ///< places that their own direction leaves
  std::size_t chunk;                ///< open places a step takes
  std::size_t chunks_done = 0;
  Rivals front;  ///< keys that win somewhere: most that is beaten is beaten by them
  std::optional<Span> span{};
  /// What a search has found beyond the keys' own directions: all that a state holds of it.
  struct Searched {
    std::uint64_t chunks = 0;
    std::vector<std::size_t> rows{};  ///< of the open places, in order
    std::vector<Verdict> verdicts{};
    std::vector<std::size_t> front{};
  };
  std::optional<Searched> restored{};  ///< until the own directions are through
  std::string restored_from{};         ///< for messages

  [[nodiscard]] std::size_t chunks() const;
  /// Of the open places, how many have been searched for.
  [[nodiscard]] std::size_t searched() const;
  void collect();
  [[nodiscard]] Searched found() const;
  /// Takes what was restored in place of searching for it. Errors    Format where it is not of these keys
  void adopt();
  [[nodiscard]] std::size_t first_unproved(const Searched& searched) const;
  [[nodiscard]] const Digest& inputs() const;
  [[nodiscard]] Selection selection();
  void advance();

 private:
  struct Contest;
  mutable std::optional<Digest> fingerprint{};  ///< of keys and options, once a state was asked for
  void run_chunk(std::vector<Contest> contests);
  void put(std::vector<Contest*>& contests, const Rivals& rivals, bool proves);
  void select(std::size_t place, Proof proof, double margin, std::vector<double> query);
  void win(const Contest& contest, double margin);
  void settle(Contest& contest);
  void next_query(Contest& contest);
};

}  // namespace normscope::selectability
