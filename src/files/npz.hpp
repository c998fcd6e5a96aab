#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <normscope/files/zip.hpp>

#include "npy.hpp"

/// Arrays in the members of a zip file; `bytes` are those of the file.
namespace normscope::files {

/// Reads the header of the array in `member` and checks the member's size against it.
///
/// Errors    Format, Shape, Unsupported; messages begin with `where`
[[nodiscard]] NpyHeader read_npz_header(std::span<const std::byte> bytes, const ZipMember& member,
                                        const std::string& where);

/// Unpacks the elements as they are stored. Memory is allocated only after the member's size is known to
/// equal that of its array.
///
/// Errors    as `read_npz_header`; Format for a wrong checksum; Unsupported beyond `most_unpacked`
[[nodiscard]] std::vector<std::byte> read_npz_data(std::span<const std::byte> bytes, const ZipMember& member,
                                                   const std::string& where);

}  // namespace normscope::files
