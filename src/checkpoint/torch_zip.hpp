#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "parsed_file.hpp"
#include "zip.hpp"

/// What torch.save writes: a zip of stored members
///   PREFIX/data.pkl     a pickle; tensors name storages by key
///   PREFIX/data/KEY     the storages' elements
///   PREFIX/byteorder    "little"; newer files only
namespace normscope::checkpoint {

/// Whether a zip of these members is one of PyTorch's, by its pickle.
[[nodiscard]] bool is_torch_zip(std::span<const ZipMember> members);

/// The state dict in a PyTorch zip held in memory. Tensors in row-major order are views; others are copied
/// into the arena.
/// Errors    Format, Shape; Unsupported for a pickle that names other code than that of tensors, for
///           packed members and other zips; messages begin with `where`
/// Cost      O(pickle + members · log members + elements copied); elements are not compared with their CRC
[[nodiscard]] ParsedFile parse_torch_zip(std::span<const std::byte> bytes, const std::string& where);

}  // namespace normscope::checkpoint
