#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <normscope/files/safetensors.hpp>

#include "file_format.hpp"
#include "parsed_file.hpp"

namespace normscope::files {

/// One open file of a checkpoint and what its tensors point into.
struct Shard {
  std::unique_ptr<Source> file;
  SafetensorsContents contents{};  ///< of other formats: tensors and metadata
  std::vector<std::byte> held{};   ///< the whole file, if it is needed in memory and not mapped
  std::optional<Arena> arena{};    ///< of other formats
  std::optional<OnnxGraph> graph{};
  std::vector<std::unique_ptr<Source>> views{};
  /// Other files with elements of tensors, and for each such tensor the index of its file.
  std::vector<std::filesystem::path> others{};
  std::map<std::string_view, std::size_t> in_other{};
};

/// A file to open, and the member of it that is the state dict, if one was named.
struct FileMember {
  std::filesystem::path file;
  std::string member{};
};

/// Splits FILE or FILE:MEMBER, where both may have colons: the file is the longest part that exists.
[[nodiscard]] FileMember split_member(const std::filesystem::path& given);

[[nodiscard]] FileFormat format_of(const Source& file, const std::filesystem::path& path);

/// Opens a file of weights of that format, with the format's short name; `expected` are the formats to have
/// in its place. `open` opens files beside it that hold elements, as an ONNX model names them; without it
/// there must be none. `open_gguf` opens GGUF files.
///
/// Errors    those of the format; Unsupported for another; Argument for a member of a file that has none
[[nodiscard]] std::pair<Shard, std::string_view> open_shard(std::unique_ptr<Source> file,
                                                            const std::filesystem::path& path,
                                                            FileFormat format, std::string_view expected,
                                                            const std::string& member = {},
                                                            const OpenSource& open = {});

[[nodiscard]] Shard open_gguf(std::unique_ptr<Source> file, const std::filesystem::path& path);

/// Indices of more bytes are not read.
inline constexpr std::uint64_t largest_index = std::uint64_t{64} << 20;

/// Maps tensor names to the names of their shard files, from the text of a `*.safetensors.index.json` or
/// `*.bin.index.json`. Shard names are plain names in the index's own folder.
///
/// Errors    Format; messages begin with `where`
[[nodiscard]] std::map<std::string, std::string, std::less<>> parse_shard_index(std::string_view text,
                                                                                const std::string& where);

}  // namespace normscope::files
