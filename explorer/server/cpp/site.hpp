#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normscope::explorer {

/// A file that is served: all that a request can reach.
struct SiteFile {
  std::string path;  ///< as a request names it, from "/"
  std::string type;  ///< its media type
  std::string etag;  ///< in quotes, another one for other contents
  std::string_view body;
};

/// A file of `body`, which outlives it, with the tag that its contents have.
[[nodiscard]] SiteFile site_file(std::string path, std::string type, std::string_view body);

/// The explorer as it was built into this program; empty where it was not.
[[nodiscard]] std::vector<SiteFile> site();
/// The content security policy of its page.
[[nodiscard]] std::string_view policy();

}  // namespace normscope::explorer
