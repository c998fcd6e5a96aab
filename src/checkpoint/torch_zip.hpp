#pragma once

#include <span>
#include <string>
#include <string_view>

#include <normscope/bytes/zip.hpp>

#include "parsed_file.hpp"

/// The format of torch.save: a zip of stored members
///   PREFIX/data.pkl     a pickle; tensors name storages by key
///   PREFIX/data/KEY     the storages' elements
///   PREFIX/byteorder    "little"; newer files only
namespace normscope::checkpoint {

/// Whether a zip with these members was written by PyTorch, recognised by its pickle.
[[nodiscard]] bool is_torch_zip(std::span<const bytes::ZipMember> members);

/// The state dict of a PyTorch zip, or the one that `member` names (torch_state.hpp). Row-major tensors are
/// parts of `stored`, of which only the directory, the pickle and the headers of storages are read; others
/// are copied into the arena.
///
/// Errors    Format, Shape, Io; Unsupported for a pickle that names code not needed for tensors,
///           for compressed members and other zips; messages begin with `where`
///
/// Cost      O(pickle + members · log members + elements copied); the CRC of elements is not checked
[[nodiscard]] ParsedFile parse_torch_zip(const bytes::StoredBytes& stored, const std::string& where,
                                         std::string_view member = {});

}  // namespace normscope::checkpoint
