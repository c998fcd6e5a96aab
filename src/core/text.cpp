#include <normscope/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

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

constexpr std::size_t longest_wanted = 128;
constexpr std::size_t changes_of_a_part = 2;
/// Shorter common parts are coincidences.
constexpr std::size_t shortest_part = 3;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// Whether `part` is one end of `whole`, and not a small one.
bool is_end(std::string_view part, std::string_view whole) {
  return part.size() >= shortest_part && whole.size() <= 3 * part.size() &&
         (whole.starts_with(part) || whole.ends_with(part));
}

/// Optimal string alignment distance, or any number above `most` if it exceeds `most`.
std::size_t changes_between(std::string_view a, std::string_view b, std::size_t most) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > most) return most + 1;
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    // A swap reaches two rows back, so that one row alone decides nothing.
    const auto least = [](const std::vector<std::size_t>& of) {
      return *std::min_element(of.begin(), of.end());
    };
    if (least(row) > most && least(last) > most) return most + 1;
    before_last = std::move(last);
    last = std::move(row);
  }
  return last.back();
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

std::string_view nearest_name(std::string_view wanted, std::span<const std::string_view> names) {
  if (wanted.empty() || wanted.size() > longest_wanted) return {};
  const std::string word = lower(wanted);
  const std::size_t most = wanted.size() / 3;
  const std::size_t none = std::max(most, changes_of_a_part) + 1;
  std::size_t fewest = none;
  std::string_view nearest;
  for (const std::string_view name : names) {
    if (name.size() > 3 * longest_wanted) continue;
    const std::string other = lower(name);
    std::size_t changes = changes_between(word, other, most);
    if (changes > most) changes = none;
    if (is_end(word, other) || is_end(other, word)) changes = std::min(changes, changes_of_a_part);
    if (changes >= fewest) continue;
    fewest = changes;
    nearest = name;
  }
  return nearest;
}

}  // namespace normscope
