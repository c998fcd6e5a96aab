#include "text.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/hash.hpp>

namespace normscope::lab {
namespace {

constexpr std::size_t lines_in_a_block = 64;
constexpr std::size_t one_in = 20;
constexpr std::size_t held_out_one = 10;

std::string contents(const std::filesystem::path& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

std::string Text::name(std::size_t token) const {
  return token < pairs.tokens.size() ? visible_text(pairs.tokens[token])
                                     : reserved[token - pairs.tokens.size()];
}

Text read_text(const std::filesystem::path& path, std::span<const std::filesystem::path> besides,
               const Recipe& recipe) {
  if (recipe.reserved_tokens >= recipe.tokens) {
    throw Error(ErrorCode::Argument, fmt::format("text: {} reserved tokens of {}, expected fewer",
                                                 recipe.reserved_tokens, recipe.tokens));
  }
  std::vector<WeightedText> texts = {{contents(path), 1}};
  for (const std::filesystem::path& other : besides)
    texts.push_back({contents(other), recipe.besides_weight});
  Text text;
  Fnv hash;
  for (const WeightedText& part : texts) hash.add(part.text);
  text.fingerprint = hash.value();
  text.pairs = merge_pairs(texts, recipe.tokens - recipe.reserved_tokens);
  while (text.vocabulary() < recipe.tokens) {
    text.reserved.push_back(fmt::format("<|reserved_{}|>", text.reserved.size()));
  }

  std::string training;
  std::string held_out;
  std::string_view rest = texts.front().text;
  for (std::size_t line = 0; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    (line / lines_in_a_block % one_in == held_out_one ? held_out : training) += rest.substr(0, end);
    rest.remove_prefix(end);
  }
  text.training_bytes = training.size();
  text.held_out_bytes = held_out.size();
  text.training = encode(text.pairs, training);
  text.held_out = encode(text.pairs, held_out);
  if (std::min(text.training.size(), text.held_out.size()) <= recipe.context) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("text: {}: {} tokens to train on and {} held out, expected more than the context of {}",
                    path.string(), text.training.size(), text.held_out.size(), recipe.context));
  }
  return text;
}

void append_row(Batch& batch, std::span<const std::int64_t> stream, std::size_t first) {
  const auto begin = stream.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(batch.length);
  batch.inputs.insert(batch.inputs.end(), begin, end);
  batch.targets.insert(batch.targets.end(), begin + 1, end + 1);
  ++batch.rows;
}

Batch random_rows(std::span<const std::int64_t> stream, std::size_t length, std::size_t rows,
                  Random& random) {
  Batch batch{0, length, {}, {}};
  while (batch.rows < rows) append_row(batch, stream, random.below(stream.size() - length));
  return batch;
}

}  // namespace normscope::lab
