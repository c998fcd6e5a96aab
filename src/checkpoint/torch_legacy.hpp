#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "parsed_file.hpp"

/// The format of torch.save before PyTorch 1.6: five pickles, then storages.
///   1. a magic number   2. the version, 1001   3. properties of the machine, such as "little_endian"
///   4. the object; tensors name storages by key   5. the keys of the storages, in their order
///   for each key: number of elements (int64), elements
namespace normscope::checkpoint {

/// The state dict of such a file in memory, or the one that `member` names (torch_state.hpp). Row-major
/// tensors are views; others are copied into the arena.
///
/// Errors    Format, Shape; Unsupported for a pickle that is not one of torch.save, or that names code not
///           needed for tensors, for files of big-endian machines, and for storages that are parts of others
///           (PyTorch 0.3 and before); messages begin with `where`
[[nodiscard]] ParsedFile parse_torch_legacy(std::span<const std::byte> bytes, const std::string& where,
                                            std::string_view member = {});

}  // namespace normscope::checkpoint
