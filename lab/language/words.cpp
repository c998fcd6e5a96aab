#include "words.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

namespace normscope::lab {
namespace {

constexpr std::uint64_t one_in = 10;

/// FNV-1a, continued from `hash`.
std::uint64_t fnv(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325ULL) {
  for (const char character : text) {
    hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3ULL;
  }
  return hash;
}

bool is_validation(std::string_view word) { return fnv(word.substr(0, word.find('\''))) % one_in == 0; }

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& character : result) {
    if (character >= 'A' && character <= 'Z') character = static_cast<char>(character - 'A' + 'a');
  }
  return result;
}

}  // namespace

std::optional<std::int64_t> token(char character) {
  const std::size_t index = alphabet.find(character);
  if (index == std::string_view::npos) return std::nullopt;
  return static_cast<std::int64_t>(index);
}

WordLists read_words(const std::filesystem::path& path, std::size_t longest) {
  const MappedFile file(path);
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  WordLists lists;
  std::vector<std::string> words;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string word = lower(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (word.empty()) continue;
    if (word.find_first_not_of(alphabet) != std::string::npos) {
      ++lists.dropped;
    } else if (word.size() > longest) {
      throw Error(ErrorCode::Argument,
                  fmt::format("words: {}: a word of {} letters, expected at most {} in the recipe's context",
                              path.string(), word.size(), longest));
    } else {
      words.push_back(word);
    }
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  lists.fingerprint = fnv("");
  for (std::string& word : words) {
    lists.fingerprint = fnv("\n", fnv(word, lists.fingerprint));
    (is_validation(word) ? lists.validation : lists.training).push_back(std::move(word));
  }
  if (lists.training.empty() || lists.validation.empty()) {
    throw Error(ErrorCode::Argument,
                fmt::format("words: {}: {} words to train on and {} to validate with, expected some of both",
                            path.string(), lists.training.size(), lists.validation.size()));
  }
  return lists;
}

}  // namespace normscope::lab
