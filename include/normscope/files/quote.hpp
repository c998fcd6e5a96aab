#pragma once

#include <string>
#include <string_view>

namespace normscope::files {

/// A name from a file, in quotes and safe for one line of a message: control characters as \xNN, cut after
/// 100 bytes.
[[nodiscard]] std::string quote(std::string_view name);

}  // namespace normscope::files
