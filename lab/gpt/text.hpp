#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/random.hpp>

#include "byte_pairs.hpp"
#include "recipe.hpp"

namespace normscope::lab {

using Tokens = std::vector<std::int64_t>;

/// A text as tokens. Of every twenty blocks of 64 lines, one is held out.
struct Text {
  BytePairs pairs;
  std::vector<std::string> reserved;  ///< tokens that no text gives
  Tokens training;
  Tokens held_out;
  std::size_t training_bytes = 0;
  std::size_t held_out_bytes = 0;
  std::uint64_t fingerprint = 0;  ///< hash of the text and of those that the tokenizer was made of besides

  /// The token as tokenizer.json spells it.
  [[nodiscard]] std::string name(std::size_t token) const;

  /// Number of tokens, the reserved ones included.
  [[nodiscard]] std::size_t vocabulary() const { return pairs.tokens.size() + reserved.size(); }
};

/// Reads the text to train on. The tokenizer is made of it and of the texts `besides`, so that it has tokens
/// that the training never meets.
///
/// Errors    Io; Unsupported for a character beyond ASCII; Argument for a text that is too short for the
/// recipe
[[nodiscard]] Text read_text(const std::filesystem::path& path,
                             std::span<const std::filesystem::path> besides, const Recipe& recipe);

/// Rows of tokens, and for each position the token that follows.
///
/// Shapes    inputs, targets (rows × length)
struct Batch {
  std::size_t rows = 0;
  std::size_t length = 0;
  Tokens inputs;
  Tokens targets;
};

/// Appends the row of the stream that begins at token `first`.
///
/// Requires  first + batch.length < stream.size()
void append_row(Batch& batch, std::span<const std::int64_t> stream, std::size_t first);

/// `rows` rows of `length` positions from random places of the stream.
///
/// Requires  length < stream.size()
[[nodiscard]] Batch random_rows(std::span<const std::int64_t> stream, std::size_t length, std::size_t rows,
                                Random& random);

}  // namespace normscope::lab
