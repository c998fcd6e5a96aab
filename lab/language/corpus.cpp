#include "corpus.hpp"

#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

#include "words.hpp"

namespace normscope::lab::language {
namespace {

constexpr std::size_t held_out_part = 20;
constexpr std::size_t shortest_text = 1000;
constexpr std::size_t longest_word = 60;

std::vector<std::uint8_t> joined(std::vector<std::string> words, Random& random) {
  for (std::size_t i = words.size(); i > 1; --i) std::swap(words[i - 1], words[random.below(i)]);
  std::vector<std::uint8_t> stream;
  for (const std::string& word : words) {
    stream.push_back(static_cast<std::uint8_t>(separator));
    for (const char character : word) stream.push_back(static_cast<std::uint8_t>(*token(character)));
  }
  return stream;
}

}  // namespace

Corpus text_corpus(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  const auto bytes = mapped.bytes();
  if (bytes.size() < shortest_text) {
    throw Error(ErrorCode::Argument, fmt::format("{}: {} characters, expected a text of at least {}",
                                                 file.string(), bytes.size(), shortest_text));
  }
  std::array<bool, 256> present{};
  for (const std::byte byte : bytes) present[std::to_integer<std::size_t>(byte)] = true;
  std::array<std::uint8_t, 256> number{};
  Corpus corpus;
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (present[i]) number[i] = static_cast<std::uint8_t>(corpus.vocabulary++);
  }
  const std::size_t held_out = bytes.size() / held_out_part;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    (i < held_out ? corpus.held_out : corpus.training)
        .push_back(number[std::to_integer<std::size_t>(bytes[i])]);
  }
  return corpus;
}

Corpus word_corpus(const std::filesystem::path& file) {
  WordLists words = read_words(file, longest_word);
  Random random(1);
  Corpus corpus{.vocabulary = alphabet.size()};
  corpus.training = joined(std::move(words.training), random);
  corpus.held_out = joined(std::move(words.validation), random);
  return corpus;
}

std::vector<std::uint8_t> pieces(const std::vector<std::uint8_t>& stream, std::size_t rows,
                                 std::size_t length, Random& random) {
  if (stream.size() < length) {
    throw Error(ErrorCode::Argument, fmt::format("corpus: {} characters, expected at least the {} of a piece",
                                                 stream.size(), length));
  }
  std::vector<std::uint8_t> result;
  result.reserve(rows * length);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto first = stream.begin() + static_cast<std::ptrdiff_t>(random.below(stream.size() - length + 1));
    result.insert(result.end(), first, first + static_cast<std::ptrdiff_t>(length));
  }
  return result;
}

}  // namespace normscope::lab::language
