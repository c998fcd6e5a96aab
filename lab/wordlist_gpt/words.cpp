#include "words.hpp"

#include <algorithm>
#include <numeric>
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

std::vector<std::string> thinned(std::span<const std::string> words, std::size_t count) {
  const std::size_t kept = std::min(count, words.size());
  std::vector<std::string> result;
  for (std::size_t i = 0; i < kept; ++i) result.push_back(words[i * words.size() / kept]);
  return result;
}

Batch one_word_a_row(std::span<const std::string> words) {
  Batch batch;
  batch.rows = words.size();
  for (const std::string& word : words) batch.length = std::max(batch.length, word.size() + 1);
  batch.inputs.assign(batch.rows * batch.length, separator);
  batch.targets.assign(batch.rows * batch.length, uncounted);
  for (std::size_t row = 0; row < batch.rows; ++row) {
    const std::size_t first = row * batch.length;
    const std::string& word = words[row];
    for (std::size_t i = 0; i < word.size(); ++i) {
      batch.targets[first + i] = *token(word[i]);
      batch.inputs[first + i + 1] = *token(word[i]);
    }
    batch.targets[first + word.size()] = separator;
  }
  return batch;
}

TrainingRows::TrainingRows(std::span<const std::string> words, std::size_t context, std::uint64_t seed)
    : words_(words), context_(context), random_(seed), order_(words.size()), position_(words.size()) {
  NORMSCOPE_ASSERT(!words.empty());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

const std::string& TrainingRows::next_word() {
  if (position_ == order_.size()) {
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_.below(i)]);
    position_ = 0;
  }
  return words_[order_[position_++]];
}

Batch TrainingRows::next(std::size_t rows) {
  Batch batch{rows, context_, {}, {}};
  batch.inputs.reserve(rows * context_);
  batch.targets.reserve(rows * context_);
  std::vector<std::int64_t> tokens;
  for (std::size_t row = 0; row < rows; ++row) {
    tokens.assign(1, separator);
    while (tokens.size() <= context_) {
      for (const char character : next_word()) tokens.push_back(*token(character));
      tokens.push_back(separator);
    }
    if (tokens.size() > context_ + 1) --position_;
    const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(context_);
    batch.inputs.insert(batch.inputs.end(), tokens.begin(), end);
    batch.targets.insert(batch.targets.end(), tokens.begin() + 1, end + 1);
  }
  return batch;
}

}  // namespace normscope::lab
