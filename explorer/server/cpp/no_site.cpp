#include "site.hpp"

namespace normscope::explorer {

std::vector<SiteFile> site() { return {}; }
std::string_view policy() { return "default-src 'none'"; }

}  // namespace normscope::explorer
