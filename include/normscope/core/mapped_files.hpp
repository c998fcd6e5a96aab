#pragma once

#include <string_view>

namespace normscope {

/// The `printable` name, cut after 500 bytes, of the `MappedFile` whose bytes are at `address`; empty if
/// there is none, or if more than 64 files are mapped. A handler of SIGBUS may call it: another process has
/// made that file shorter.
[[nodiscard]] std::string_view mapped_file_at(const void* address) noexcept;

}  // namespace normscope
