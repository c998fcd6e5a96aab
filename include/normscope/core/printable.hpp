#pragma once

#include <string>
#include <string_view>

namespace normscope {

/// Text from a file, so that it can neither control a terminal nor look like other text: control characters
/// and bytes that are not UTF-8 as \xNN; what breaks a line, changes the direction of text, or is invisible,
/// as \uNNNN. The report page does the same (explorer/shared/printable.ts).
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace normscope
