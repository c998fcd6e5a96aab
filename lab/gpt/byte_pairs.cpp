#include "byte_pairs.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <normscope/core/error.hpp>
#include <normscope/forward/tokenizer.hpp>
#include <normscope/models/token_names.hpp>

namespace normscope::lab {
namespace {

constexpr std::size_t bytes = 256;

struct Word {
  std::uint64_t count = 0;
  std::vector<std::int64_t> tokens;
};

void merge(std::vector<std::int64_t>& word, std::pair<std::int64_t, std::int64_t> pair, std::int64_t merged) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < word.size(); ++i, ++kept) {
    const bool found = i + 1 < word.size() && word[i] == pair.first && word[i + 1] == pair.second;
    word[kept] = found ? merged : word[i];
    i += found ? 1 : 0;
  }
  word.resize(kept);
}

}  // namespace

std::string visible_text(std::string_view token) {
  std::string text;
  for (const char byte : token) text += models::visible_byte(static_cast<unsigned char>(byte));
  return text;
}

BytePairs merge_pairs(std::span<const WeightedText> texts, std::size_t tokens) {
  if (tokens < bytes) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("merge_pairs: {} tokens, expected at least one for each of {} bytes", tokens, bytes));
  }
  std::map<std::string, Word, std::less<>> words;
  for (const auto& [text, weight] : texts) {
    for (const std::string_view found : forward::split_words(text)) {
      Word& word = words[std::string(found)];
      const bool is_new = word.count == 0;
      word.count += weight;
      if (!is_new) continue;
      for (const char byte : found) word.tokens.push_back(static_cast<unsigned char>(byte));
    }
  }
  BytePairs pairs;
  for (std::size_t byte = 0; byte < bytes; ++byte) pairs.tokens.emplace_back(1, static_cast<char>(byte));
  std::vector<std::uint64_t> counts(tokens * tokens);
  while (pairs.tokens.size() < tokens) {
    std::fill(counts.begin(), counts.end(), 0);
    for (const auto& [text, word] : words) {
      for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
        counts[static_cast<std::size_t>(word.tokens[i]) * tokens +
               static_cast<std::size_t>(word.tokens[i + 1])] += word.count;
      }
    }
    const auto best = std::max_element(counts.begin(), counts.end());
    if (*best == 0) break;
    const auto place = static_cast<std::size_t>(best - counts.begin());
    const std::pair pair(static_cast<std::int64_t>(place / tokens),
                         static_cast<std::int64_t>(place % tokens));
    const auto merged = static_cast<std::int64_t>(pairs.tokens.size());
    for (auto& [text, word] : words) merge(word.tokens, pair, merged);
    pairs.merges.push_back(pair);
    pairs.tokens.push_back(pairs.tokens[place / tokens] + pairs.tokens[place % tokens]);
  }
  for (auto& [text, word] : words) pairs.words.emplace(text, std::move(word.tokens));
  return pairs;
}

std::vector<std::int64_t> encode(const BytePairs& pairs, std::string_view text) {
  std::vector<std::int64_t> tokens;
  for (const std::string_view word : forward::split_words(text)) {
    const auto found = pairs.words.find(word);
    NORMSCOPE_ASSERT(found != pairs.words.end());
    tokens.insert(tokens.end(), found->second.begin(), found->second.end());
  }
  return tokens;
}

std::string tokenizer_json(const BytePairs& pairs, std::span<const std::string> reserved) {
  using Json = nlohmann::ordered_json;
  Json vocabulary = Json::object();
  for (std::size_t i = 0; i < pairs.tokens.size(); ++i) vocabulary[visible_text(pairs.tokens[i])] = i;
  Json added = Json::array();
  for (const std::string& name : reserved) {
    const std::size_t id = vocabulary.size();
    vocabulary[name] = id;
    added.push_back({{"id", id},
                     {"content", name},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  Json merges = Json::array();
  for (const auto& [first, second] : pairs.merges) {
    merges.push_back(visible_text(pairs.tokens[static_cast<std::size_t>(first)]) + " " +
                     visible_text(pairs.tokens[static_cast<std::size_t>(second)]));
  }
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json tokenizer = {{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens", added},
                          {"normalizer", nullptr},
                          {"pre_tokenizer", byte_level},
                          {"post_processor", nullptr},
                          {"decoder", byte_level},
                          {"model",
                           {{"type", "BPE"},
                            {"dropout", nullptr},
                            {"unk_token", nullptr},
                            {"continuing_subword_prefix", ""},
                            {"end_of_word_suffix", ""},
                            {"fuse_unk", false},
                            {"byte_fallback", false},
                            {"vocab", vocabulary},
                            {"merges", merges}}}};
  return tokenizer.dump(1, ' ', false) + "\n";
}

}  // namespace normscope::lab
