#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <normscope/core/random.hpp>

/// Text as two streams of characters, for small language models.
namespace normscope::lab::language {

struct Corpus {
  std::vector<std::uint8_t> training{};
  std::vector<std::uint8_t> held_out{};
  std::size_t vocabulary = 0;  ///< characters are numbered from 0
};

/// A text: its first twentieth is held out; characters are numbered by byte value.
///
/// Errors    Io; Argument for a text of less than 1000 characters
[[nodiscard]] Corpus text_corpus(const std::filesystem::path& file);

/// A shuffled word list with a newline between words; one word in ten is held out.
///
/// Errors    Io; Argument
[[nodiscard]] Corpus word_corpus(const std::filesystem::path& file);

/// `rows` pieces of `length` characters from random positions of the stream, concatenated.
///
/// Errors    Argument for a stream shorter than a piece
[[nodiscard]] std::vector<std::uint8_t> pieces(const std::vector<std::uint8_t>& stream, std::size_t rows,
                                               std::size_t length, Random& random);

}  // namespace normscope::lab::language
