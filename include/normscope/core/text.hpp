#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace normscope {

/// "1 norm", "2 norms": a count with its noun, for messages.
[[nodiscard]] inline std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace normscope
