#include <normscope/forward/words.hpp>

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

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

void append_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else {
    text += static_cast<char>(0xC0U | (code >> 6U));
    text += static_cast<char>(0x80U | (code & 0x3FU));
  }
}

bool is_visible(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
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
    throw Error(
        ErrorCode::Unsupported,
        fmt::format("trace: the text has a character beyond ASCII at byte {}, which this tokenizer cannot "
                    "split into words; give --tokens",
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

std::string visible_byte(unsigned char byte) {
  std::string text;
  if (is_visible(byte)) {
    append_utf8(text, byte);
    return text;
  }
  std::uint32_t hidden = 0;  // of the bytes before it
  for (unsigned other = 0; other < byte; ++other) hidden += is_visible(other) ? 0 : 1;
  append_utf8(text, 256 + hidden);
  return text;
}

}  // namespace normscope::forward
