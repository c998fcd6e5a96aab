#include "site.hpp"

#include <utility>

#include <fmt/core.h>

#include <normscope/core/hash.hpp>

namespace normscope::explorer {

SiteFile site_file(std::string path, std::string type, std::string_view body) {
  Fnv hash;
  hash.add(body);
  return {std::move(path), std::move(type), fmt::format("\"{:016x}-{:x}\"", hash.value(), body.size()), body,
          false};
}

}  // namespace normscope::explorer
