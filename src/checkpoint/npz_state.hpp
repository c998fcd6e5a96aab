#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <normscope/bytes/zip.hpp>

#include "parsed_file.hpp"

/// Weights in the `.npz` file that numpy.savez or savez_compressed writes: a zip of `.npy` members.
namespace normscope::checkpoint {

/// Whether all of these members are arrays.
[[nodiscard]] bool is_npz(std::span<const bytes::ZipMember> members);

/// The arrays of an `.npz` file in memory, named without ".npy". Arrays that are stored row-major and
/// little-endian remain in place; others are unpacked on reading, and the most recent ones are cached.
/// Arrays of text or objects are refused.
///
/// Errors    Format, Shape, Unsupported; messages begin with `where`
///
/// Cost      O(members · log members); elements in place are not read
[[nodiscard]] ParsedFile parse_npz(std::span<const std::byte> bytes,
                                   std::span<const bytes::ZipMember> members, const std::string& where);

}  // namespace normscope::checkpoint
