#include <normscope/core/text.hpp>

#include <algorithm>
#include <cstddef>

#include <fmt/core.h>

namespace normscope {
namespace {

/// A character of UTF-8; of length 0 if the text does not begin with one.
struct Character {
  std::size_t length = 0;
  unsigned code = 0;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const std::size_t length = byte(0) < 0x80    ? 1
                             : byte(0) >= 0xf0 ? 4
                             : byte(0) >= 0xe0 ? 3
                             : byte(0) >= 0xc2 ? 2
                                               : 0;
  if (length == 0 || length > text.size() || byte(0) > 0xf4) return {};
  unsigned code = length == 1 ? byte(0) : byte(0) & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  return {length, code};
}

struct CodePoints {
  unsigned first;
  unsigned last;
};

/// Beyond ASCII: controls; the soft hyphen; marks of direction, and of joining; line and paragraph
/// separators; embeddings, overrides and isolates; invisible operators; the byte order mark; annotations;
/// tags.
constexpr CodePoints hidden[] = {{0x80, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},   {0x180e, 0x180e},
                                 {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f}, {0xfeff, 0xfeff},
                                 {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

bool is_hidden(unsigned code) {
  return std::any_of(std::begin(hidden), std::end(hidden),
                     [code](const CodePoints& range) { return range.first <= code && code <= range.last; });
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.length == 0 || character.code < 0x20 || character.code == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (is_hidden(character.code)) {
      result += fmt::format("\\u{:04x}", character.code);
    } else {
      result += text.substr(0, character.length);
    }
    text.remove_prefix(std::max<std::size_t>(character.length, 1));
  }
  return result;
}

}  // namespace normscope
