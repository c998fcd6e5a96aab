#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace normscope::files {

/// Decompresses a zlib stream that holds exactly `out.size()` bytes.
///
/// Errors    Format for a stream that is damaged, shorter or longer; Unsupported in builds without zlib;
///           messages begin with `where`
void inflate_zlib(std::span<const std::byte> packed, std::span<std::byte> out, const std::string& where);

}  // namespace normscope::files
