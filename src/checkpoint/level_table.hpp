#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

/// The table format of LevelDB, in which TensorFlow writes the index of a checkpoint: blocks of sorted
/// entries with prefix-compressed keys, an index block that lists them, and a footer that points to the index
/// block.
namespace normscope::checkpoint {

/// Calls `take` with every key and value of the table, in its order. Checksums are checked.
///
/// Errors    Format; Unsupported for compressed blocks and keys beyond 4096 bytes; messages begin with
///           `where`
///
/// Cost      O(file), in memory that of the longest key
void read_level_table(
    std::span<const std::byte> bytes, const std::string& where,
    const std::function<void(std::string_view key, std::span<const std::byte> value)>& take);

}  // namespace normscope::checkpoint
