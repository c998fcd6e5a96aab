#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "parsed_file.hpp"

/// The format of `flax.serialization.to_bytes`: MessagePack maps, nested, with names as keys. An array is an
/// extension of type 1, a NumPy scalar one of type 3; both hold an array of three: the shape (an array of
/// integers), the name of the NumPy dtype, and the elements (row-major, little-endian).
namespace normscope::checkpoint {

/// The arrays of a Flax msgpack file, in place. A tensor's name is its path of keys, joined by '.'; other
/// values (numbers, text, lists) are skipped.
///
/// Errors    Format, Shape; Unsupported for arrays in chunks (those beyond 1 GiB), for dtypes that are not
///           known and for nesting deeper than 64; messages begin with `where`
///
/// Cost      O(file's structure + tensors · log tensors)
[[nodiscard]] ParsedFile parse_flax(std::span<const std::byte> bytes, const std::string& where);

}  // namespace normscope::checkpoint
