#pragma once

#include <map>
#include <string>
#include <string_view>

namespace normscope::checkpoint {

/// Maps tensor names to the names of their shard files, from the text of a `*.safetensors.index.json` or
/// `*.bin.index.json`. Shard names are plain names in the index's own folder.
///
/// Errors    Format; messages begin with `where`
[[nodiscard]] std::map<std::string, std::string, std::less<>> parse_shard_index(std::string_view text,
                                                                                const std::string& where);

}  // namespace normscope::checkpoint
