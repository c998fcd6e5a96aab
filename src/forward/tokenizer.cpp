#include <normscope/forward/tokenizer.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/files/json_value.hpp>
#include <normscope/files/source.hpp>
#include <normscope/models/token_names.hpp>

namespace normscope::forward {
namespace {

enum class Class { space, letter, digit, other };

Class class_of(char c) {
  if (c == ' ' || (c >= '\t' && c <= '\r')) return Class::space;
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return Class::letter;
  return c >= '0' && c <= '9' ? Class::digit : Class::other;
}

/// Number of bytes from `at` on that are of one class.
std::size_t run_of(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && class_of(text[end]) == class_of(text[at])) ++end;
  return end - at;
}

std::size_t contraction(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(ending)) return ending.size();
  }
  return 0;
}

std::size_t word_at(std::string_view text, std::size_t at) {
  if (const std::size_t length = contraction(text.substr(at)); length != 0) return length;
  const std::size_t run = run_of(text, at);
  if (class_of(text[at]) != Class::space) return run;
  const bool before_word = at + run < text.size();
  if (!before_word) return run;
  // The last space of several belongs to the next word; a single one as well, if it is ' '.
  if (run > 1) return run - 1;
  return text[at] == ' ' ? 1 + run_of(text, at + 1) : 1;
}

}  // namespace

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const auto lead = static_cast<unsigned char>(text.front());
    const std::size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    std::size_t length = 1;
    while (length < wanted && length < text.size() &&
           (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) {
      ++length;
    }
    result.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return result;
}

std::vector<std::string_view> split_words(std::string_view text) {
  const auto beyond =
      std::find_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  if (beyond != text.end()) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("the text has a character beyond ASCII at byte {}, which this tokenizer cannot "
                            "split into words; give tokens instead",
                            beyond - text.begin()));
  }
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = word_at(text, at);
    words.push_back(text.substr(at, length));
    at += length;
  }
  return words;
}

namespace {

using Json = nlohmann::json;

enum class Kind { llama2c, byte_level, characters };

/// Tokens of llama2.c: the first token of a text, and the one of byte 0.
constexpr std::size_t first_token = 1;
constexpr std::size_t byte_token = 3;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorCode::Format, fmt::format("{}: {}", file.string(), what));
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorCode::Unsupported,
              fmt::format("{}: {}, expected byte-level BPE as GPT-2 has it; give tokens instead",
                          file.string(), what));
}

std::string contents(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  return {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()};
}

/// Whether `tokenizer` does what GPT-2's does with text: nothing before the split into words, and no token
/// beside those of the text.
void expect_byte_level(const std::filesystem::path& file, const Json& tokenizer) {
  const auto text = [](const Json& object, const char* key) {
    return object.is_object() && object.contains(key) && object[key].is_string()
               ? object[key].get<std::string>()
               : std::string();
  };
  const auto part = [&](const char* key) { return tokenizer.value(key, Json()); };
  if (text(part("model"), "type") != "BPE") refuse(file, "its model is not BPE");
  if (!part("normalizer").is_null()) refuse(file, "it has a normalizer");
  const Json split = part("pre_tokenizer");
  if (text(split, "type") != "ByteLevel" || split.value("add_prefix_space", Json()) == true ||
      split.value("use_regex", Json()) == false) {
    refuse(file, "it splits text in another way");
  }
  const Json after = part("post_processor");
  if (!after.is_null() && text(after, "type") != "ByteLevel") refuse(file, "it adds tokens to the text");
  for (const char* option :
       {"byte_fallback", "ignore_merges", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json value = part("model").value(option, Json());
    if (!value.is_null() && value != false && value != Json(""))
      refuse(file, fmt::format("it has {}", option));
  }
}

}  // namespace

struct Tokenizer::State {
  Kind kind = Kind::characters;
  std::vector<std::string> names{};
  std::unordered_map<std::string, std::size_t> numbers{};
  std::vector<float> scores{};                                         ///< of llama2.c, by token
  std::map<std::pair<std::string, std::string>, std::size_t> ranks{};  ///< of BPE's pairs

  State(const std::filesystem::path& file, std::size_t tokens)
      : names(models::read_token_names(file, tokens)) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!names[i].empty()) numbers.emplace(names[i], i);
    }
    if (file.extension() == ".bin") {
      kind = Kind::llama2c;
      scores = models::read_token_scores(file, tokens);
      if (tokens < byte_token + 256)
        fail(file, "has no tokens of single bytes, expected a llama2.c tokenizer");
      return;
    }
    if (file.extension() != ".json") refuse(file, "it has names of tokens alone");
    const std::filesystem::path merges = file.parent_path() / "merges.txt";
    std::error_code missing;
    if (file.filename() == "tokenizer.json") {
      kind = Kind::byte_level;
      read_tokenizer(file);
    } else if (std::filesystem::is_regular_file(merges, missing)) {
      kind = Kind::byte_level;
      read_merges(merges);
    } else if (!std::all_of(names.begin(), names.end(), [](const std::string& name) {
                 return name.size() <= 1 || characters(name) == 1;
               })) {
      refuse(file, "merges.txt is not beside it");
    }
  }

  void add_pair(const std::filesystem::path& file, std::string_view first, std::string_view second) {
    if (first.empty() || second.empty()) fail(file, "has a merge that is no pair of tokens");
    ranks.emplace(std::pair(std::string(first), std::string(second)), ranks.size());
  }

  void add_line(const std::filesystem::path& file, std::string_view line) {
    const std::size_t space = std::min(line.find(' '), line.size());
    add_pair(file, line.substr(0, space), line.substr(std::min(space + 1, line.size())));
  }

  void read_merges(const std::filesystem::path& file) {
    const std::string text = contents(file);
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view line = rest.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      const bool is_header = ranks.empty() && line.starts_with("#version");
      if (!line.empty() && !is_header) add_line(file, line);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  void read_tokenizer(const std::filesystem::path& file) {
    const std::optional<Json> tokenizer = files::read_json(contents(file));
    if (!tokenizer || !tokenizer->is_object()) {
      fail(file, fmt::format("is not a JSON object of at most {} values, expected a tokenizer",
                             files::most_json_values));
    }
    expect_byte_level(file, *tokenizer);
    const Json merges = (*tokenizer)["model"].value("merges", Json());
    if (!merges.is_array()) fail(file, "has no list of merges");
    for (const Json& merge : merges) {
      if (merge.is_string()) {
        add_line(file, merge.get_ref<const std::string&>());
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        add_pair(file, merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
      } else {
        fail(file, "has a merge that is no pair of tokens");
      }
    }
  }

  [[nodiscard]] std::size_t number_of(const std::string& name) const {
    const auto at = numbers.find(name);
    if (at == numbers.end()) {
      throw Error(ErrorCode::Argument,
                  fmt::format("the text has {}, which is not in the vocabulary", files::quote(name)));
    }
    return at->second;
  }

  /// Joins neighbours as long as a pair has a worth, the first of the most worthy pairs first.
  template <typename Worth>
  static void join(std::vector<std::string>& parts, const Worth& worth) {
    const auto of_pair = [&](std::size_t i) {
      return i + 1 < parts.size() ? worth(parts[i], parts[i + 1]) : std::optional<double>();
    };
    std::vector<std::optional<double>> worths(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) worths[i] = of_pair(i);
    while (parts.size() > 1) {
      const auto best = std::max_element(worths.begin(), worths.end());
      if (!*best) return;
      const auto i = static_cast<std::size_t>(best - worths.begin());
      parts[i] += parts[i + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      worths.erase(worths.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      worths[i] = of_pair(i);
      if (i > 0) worths[i - 1] = of_pair(i - 1);
    }
  }

  [[nodiscard]] std::vector<std::size_t> of_llama2c(std::string_view text) const {
    std::vector<std::size_t> tokens = {first_token};
    std::vector<std::string> parts;
    if (!text.empty()) parts.emplace_back(" ");
    for (const std::string_view character : split_characters(text)) {
      if (numbers.contains(std::string(character))) {
        parts.emplace_back(character);
      } else {
        for (const char byte : character) parts.push_back(byte_name(byte));
      }
    }
    join(parts, [&](const std::string& a, const std::string& b) -> std::optional<double> {
      const auto at = numbers.find(a + b);
      return at == numbers.end() ? std::optional<double>() : std::optional<double>(scores[at->second]);
    });
    for (const std::string& part : parts) tokens.push_back(number_of(part));
    return tokens;
  }

  /// The name of the token that stands for a byte.
  [[nodiscard]] std::string byte_name(char byte) const {
    return names[byte_token + static_cast<unsigned char>(byte)];
  }

  [[nodiscard]] std::vector<std::size_t> of_byte_level(std::string_view text) const {
    std::vector<std::size_t> tokens;
    for (const std::string_view word : split_words(text)) {
      std::vector<std::string> parts;
      for (const char byte : word) parts.push_back(models::visible_byte(static_cast<unsigned char>(byte)));
      join(parts, [&](const std::string& a, const std::string& b) -> std::optional<double> {
        const auto at = ranks.find({a, b});
        return at == ranks.end() ? std::optional<double>()
                                 : std::optional<double>(-static_cast<double>(at->second));
      });
      for (const std::string& part : parts) tokens.push_back(number_of(part));
    }
    return tokens;
  }

  [[nodiscard]] std::vector<std::size_t> of_characters(std::string_view text) const {
    std::vector<std::size_t> tokens;
    for (const std::string_view character : split_characters(text)) {
      tokens.push_back(number_of(std::string(character)));
    }
    return tokens;
  }
};

Tokenizer::Tokenizer(const std::filesystem::path& file, std::size_t tokens)
    : state_(std::make_unique<const State>(file, tokens)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

const std::vector<std::string>& Tokenizer::names() const { return state_->names; }

std::vector<std::size_t> Tokenizer::encode(std::string_view text) const {
  if (text.size() > longest_text) {
    throw Error(ErrorCode::Argument,
                fmt::format("the text has {} bytes, expected at most {}", text.size(), longest_text));
  }
  switch (state_->kind) {
    case Kind::llama2c: return state_->of_llama2c(text);
    case Kind::byte_level: return state_->of_byte_level(text);
    case Kind::characters: break;
  }
  return state_->of_characters(text);
}

std::size_t find_token(const std::string& text, const std::vector<std::string>& names,
                       const Tokenizer* tokenizer) {
  std::size_t id = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, id);
  if (parsed.ec == std::errc{} && parsed.ptr == end) return id;
  auto named = std::find(names.begin(), names.end(), text);
  // As the file spells it, where the names are text.
  if (named == names.end()) {
    named = std::find(names.begin(), names.end(), models::token_texts({text}).front());
  }
  if (named != names.end()) return static_cast<std::size_t>(named - names.begin());
  std::string expected = "expected an id or a name";
  if (std::find(names.begin(), names.end(), " " + text) != names.end()) {
    expected = fmt::format("which has \" {}\", the beginning of a word", printable(text));
  } else if (tokenizer != nullptr && !text.empty()) {
    const std::vector<std::size_t> tokens = tokenizer->encode(text);
    if (tokens.size() == 1) return tokens.front();
    expected = fmt::format("which spells it with {} tokens; expected one, as an id or a name", tokens.size());
  }
  throw Error(ErrorCode::Argument,
              fmt::format("token: \"{}\" is not in the vocabulary, {}", printable(text), expected));
}

}  // namespace normscope::forward
