#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normscope::explorer {

/// A file that is served. Requests can reach nothing else.
struct SiteFile {
  std::string path;  ///< as in requests, with the leading "/"
  std::string type;  ///< its media type
  std::string etag;  ///< in quotes; differs for different contents
  std::string_view body;
  bool is_private = false;  ///< whether browsers may not keep a copy
};

/// A file with contents `body`, which must outlive it, and the tag of these contents.
[[nodiscard]] SiteFile site_file(std::string path, std::string type, std::string_view body);

/// The explorer's files, if this program was built with them; otherwise empty.
[[nodiscard]] std::vector<SiteFile> site();
/// The content security policy of the explorer's page.
[[nodiscard]] std::string_view policy();

}  // namespace normscope::explorer
