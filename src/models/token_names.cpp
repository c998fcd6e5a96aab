#include <normscope/models/token_names.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

#include "token_names_parse.hpp"

namespace normscope::models {
namespace {

using Names = std::vector<std::string>;

/// Reads a vocabulary from JSON events, with no deeper nesting than a vocabulary has.
class VocabularyEvents : public nlohmann::json::json_sax_t {
 public:
  explicit VocabularyEvents(Names& names) : names_(names) {}

  bool null() override { return value(); }
  bool boolean(bool /*value*/) override { return value(); }
  bool number_integer(number_integer_t /*value*/) override { return value(); }
  bool number_float(number_float_t /*value*/, const std::string& /*text*/) override { return value(); }
  bool binary(binary_t& /*bytes*/) override { return value(); }

  bool number_unsigned(number_unsigned_t number) override {
    if (depth_ == 1) set(number, keys_[1], plain_);
    if (depth_ == 3 && keys_[1] == "model" && keys_[2] == "vocab") set(number, keys_[3], named_);
    if (in_added() && keys_[3] == "id") added_id_ = number;
    return value();
  }

  bool string(std::string& text) override {
    // In a list of pairs, the first part of a pair is the name and its position in the list the token number.
    if (depth_ == 4 && keys_[1] == "model" && keys_[2] == "vocab" && lists_[3] && lists_[4] &&
        places_[4] == 0) {
      set(places_[3], text, named_);
    }
    if (in_added() && keys_[3] == "content") added_ = text;
    return value();
  }

  bool key(std::string& text) override {
    if (depth_ < kept) keys_[depth_] = text;
    return true;
  }

  bool start_object(std::size_t /*count*/) override { return open(false); }
  bool start_array(std::size_t /*count*/) override { return open(true); }
  bool end_array() override { return close(); }
  bool end_object() override {
    if (in_added() && added_id_) set(*added_id_, added_, named_);
    if (in_added()) {
      added_id_.reset();
      added_.clear();
    }
    return close();
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    broken_at = position;
    return false;
  }

  /// Whether any name was found.
  [[nodiscard]] bool found() const { return plain_ || named_; }
  std::size_t broken_at = 0;

 private:
  static constexpr std::size_t kept = 8;

  [[nodiscard]] bool in_added() const {
    return depth_ == 3 && keys_[1] == "added_tokens" && lists_[2] && !lists_[3];
  }

  void set(std::uint64_t number, const std::string& name, bool& found) {
    found = true;
    if (number < names_.size()) names_[number] = name;
  }

  bool open(bool list) {
    ++depth_;
    if (depth_ < kept) {
      lists_[depth_] = list;
      places_[depth_] = 0;
      keys_[depth_].clear();
    }
    return true;
  }
  bool close() {
    --depth_;
    return value();
  }
  bool value() {
    if (depth_ < kept) ++places_[depth_];
    return true;
  }

  Names& names_;
  std::size_t depth_ = 0;
  bool lists_[kept] = {};
  std::uint64_t places_[kept] = {};
  std::string keys_[kept];
  std::optional<std::uint64_t> added_id_{};
  std::string added_{};
  bool plain_ = false;
  bool named_ = false;
};

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorCode::Format, fmt::format("{}: {}", file.string(), what));
}

void read_json(std::string_view text, const std::filesystem::path& file, Names& names) {
  VocabularyEvents events(names);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &events)) {
    fail(file, fmt::format("is not valid JSON at byte {}, expected a vocabulary", events.broken_at));
  }
  if (!events.found())
    fail(file, "contains no tokens, expected {\"model\": {\"vocab\": ...}} or {name: number}");
}

void read_lines(std::string_view text, Names& names) {
  for (std::string& name : names) {
    if (text.empty()) return;
    const std::size_t end = std::min(text.find('\n'), text.size());
    name = text.substr(0, end);
    if (!name.empty() && name.back() == '\r') name.pop_back();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Calls `each` with index, score and bytes of the first `tokens` tokens.
template <typename Each>
void read_llama2c(std::string_view bytes, const std::filesystem::path& file, std::size_t tokens,
                  const Each& each) {
  const auto take = [&](auto& value) {
    if (bytes.size() < sizeof value) fail(file, "ends within a number, expected a llama2.c tokenizer");
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
  };
  std::int32_t longest = 0;
  take(longest);
  for (std::size_t i = 0; i < tokens && !bytes.empty(); ++i) {
    float score = 0.0F;
    std::int32_t length = 0;
    take(score);
    take(length);
    if (length < 0 || static_cast<std::size_t>(length) > bytes.size()) {
      fail(file, fmt::format("a token is {} bytes long with {} left, expected a llama2.c tokenizer", length,
                             bytes.size()));
    }
    each(i, score, bytes.substr(0, static_cast<std::size_t>(length)));
    bytes.remove_prefix(static_cast<std::size_t>(length));
  }
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// The bytes that a byte-level vocabulary spells, by their characters.
using SpelledBytes = std::map<std::string, char, std::less<>>;

/// The bytes that `name` spells; one with other characters is an added token, which is text.
std::string spelled(const std::string& name, const SpelledBytes& bytes) {
  std::string text;
  for (std::string_view rest = name; !rest.empty();) {
    auto found = bytes.find(rest.substr(0, 2));  // one beyond ASCII has two bytes
    if (found == bytes.end()) found = bytes.find(rest.substr(0, 1));
    if (found == bytes.end()) return name;
    text += found->second;
    rest.remove_prefix(found->first.size());
  }
  return text;
}

bool is_visible(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

}  // namespace

std::vector<std::string> parse_token_names(std::string_view text, const std::filesystem::path& file,
                                           std::size_t tokens) {
  Names names(tokens);
  if (file.extension() == ".json") {
    read_json(text, file, names);
  } else if (file.extension() == ".bin") {
    read_llama2c(text, file, tokens,
                 [&](std::size_t i, float /*score*/, std::string_view name) { names[i] = name; });
  } else if (file.extension() == ".txt") {
    read_lines(text, names);
  } else {
    fail(file, "does not have the name of a vocabulary, expected .json, .txt or .bin");
  }
  return names;
}

std::vector<std::string> read_token_names(const std::filesystem::path& file, std::size_t tokens) {
  const MappedFile mapped(file);
  return parse_token_names(text_of(mapped), file, tokens);
}

std::vector<float> read_token_scores(const std::filesystem::path& file, std::size_t tokens) {
  const MappedFile mapped(file);
  std::vector<float> scores(tokens);
  read_llama2c(text_of(mapped), file, tokens, [&](std::size_t i, float score, std::string_view /*name*/) {
    if (!std::isfinite(score)) fail(file, fmt::format("the score of token {} is not finite", i));
    scores[i] = score;
  });
  return scores;
}

std::string visible_byte(unsigned char byte) {
  const auto character = [](std::uint32_t code) {
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return std::string{static_cast<char>(0xC0U | (code >> 6U)), static_cast<char>(0x80U | (code & 0x3FU))};
  };
  if (is_visible(byte)) return character(byte);
  std::uint32_t hidden = 0;  // of the bytes before it
  for (unsigned other = 0; other < byte; ++other) hidden += is_visible(other) ? 0 : 1;
  return character(256 + hidden);
}

std::vector<std::string> token_texts(std::vector<std::string> names) {
  const auto replace = [&](std::string_view mark, std::string_view text) {
    for (std::string& name : names) {
      for (std::size_t at = 0; (at = name.find(mark, at)) != std::string::npos; at += text.size()) {
        name.replace(at, mark.size(), text);
      }
    }
  };
  const auto begins_some = [&](std::string_view mark) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return name.rfind(mark, 0) == 0; });
  };
  constexpr std::string_view sentence_piece = "\u2581";
  if (begins_some(visible_byte(' '))) {
    SpelledBytes bytes;
    for (unsigned byte = 0; byte < 256; ++byte) {
      bytes.emplace(visible_byte(static_cast<unsigned char>(byte)), static_cast<char>(byte));
    }
    for (std::string& name : names) name = spelled(name, bytes);
  } else if (begins_some(sentence_piece)) {
    replace(sentence_piece, " ");
  }
  return names;
}

std::optional<std::filesystem::path> find_token_names(const std::filesystem::path& folder,
                                                      std::size_t tokens) {
  std::vector<std::string> files = {"tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.bin"};
  if (tokens > 0) files.push_back(fmt::format("tok{}.bin", tokens));
  for (const std::string& name : files) {
    std::error_code missing;
    if (std::filesystem::is_regular_file(folder / name, missing)) return folder / name;
  }
  return std::nullopt;
}

}  // namespace normscope::models
