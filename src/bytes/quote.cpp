#include <normscope/bytes/quote.hpp>

#include <fmt/core.h>

namespace normscope::bytes {

std::string quote(std::string_view name) {
  constexpr std::size_t longest = 100;
  std::size_t length = name.size();
  if (length > longest) {
    length = longest;
    while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80) --length;
  }
  std::string quoted = "\"";
  for (const char c : name.substr(0, length)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  quoted += length < name.size() ? "...\"" : "\"";
  return quoted;
}

}  // namespace normscope::bytes
