#include "site.hpp"

#include <cstdint>
#include <utility>

#include <fmt/core.h>

namespace normscope::explorer {

SiteFile site_file(std::string path, std::string type, std::string_view body) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : body) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return {std::move(path), std::move(type), fmt::format("\"{:016x}-{:x}\"", hash, body.size()), body, false};
}

}  // namespace normscope::explorer
