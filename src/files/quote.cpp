#include <normscope/files/quote.hpp>

#include <normscope/core/printable.hpp>

namespace normscope::files {

std::string quote(std::string_view name) {
  constexpr std::size_t longest = 100;
  std::size_t length = name.size();
  if (length > longest) {
    length = longest;
    while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80) --length;
  }
  std::string quoted = "\"" + printable(name.substr(0, length));
  quoted += length < name.size() ? "...\"" : "\"";
  return quoted;
}

}  // namespace normscope::files
