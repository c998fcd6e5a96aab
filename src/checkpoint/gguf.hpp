#pragma once

#include <string>

#include <normscope/bytes/source.hpp>

#include "parsed_file.hpp"

/// The format of llama.cpp's models:
///   "GGUF", version (uint32), number of tensors and of metadata entries (uint64)
///   metadata: key, type, value; numbers, booleans, strings, and arrays of these
///   tensors: name, number of dimensions, dimensions (fastest first), type, offset
///   the data, at the next multiple of "general.alignment" (32): tensors in order, each at such a multiple
namespace normscope::checkpoint {

/// The contents of a GGUF file of version 2 or 3. The data are not read: tensors of plain elements are parts
/// of `file`, tensors in blocks are views that decode on reading. Shapes are row-major, the slowest axis
/// first. Metadata values are JSON text, strings without quotes; of arrays of strings or of more than 4096
/// numbers, only the length is kept.
///
/// Errors    Format, Shape; Unsupported for other versions, big-endian files, unknown types of tensors and a
///           header that needs more memory than the file's size plus 32 MiB; messages begin with `where`
///
/// Cost      O(header + tensors · log tensors)
[[nodiscard]] ParsedFile parse_gguf(const bytes::StoredBytes& file, const std::string& where);

}  // namespace normscope::checkpoint
