#include "words.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/hash.hpp>

namespace normscope::lab {
namespace {

constexpr std::uint64_t one_in = 10;

bool is_validation(std::string_view word) {
  Fnv hash;
  hash.add(word.substr(0, word.find('\'')));
  return hash.value() % one_in == 0;
}

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
  Fnv hash;
  for (std::string& word : words) {
    hash.add(word);
    hash.add("\n");
    (is_validation(word) ? lists.validation : lists.training).push_back(std::move(word));
  }
  lists.fingerprint = hash.value();
  if (lists.training.empty() || lists.validation.empty()) {
    throw Error(ErrorCode::Argument,
                fmt::format("words: {}: {} words to train on and {} to validate with, expected some of both",
                            path.string(), lists.training.size(), lists.validation.size()));
  }
  return lists;
}

}  // namespace normscope::lab
