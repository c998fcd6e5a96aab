#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
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
  std::string_view format = "safetensors";  ///< `Checkpoint::format`
};

/// A file of weights to open.
struct ShardRequest {
  std::unique_ptr<Source> file;
  std::filesystem::path path;
  std::string_view expected;  ///< formats to have in place of one that is not read
  std::string member{};       ///< the name of a state dict, or empty
  /// Opens files beside it that hold elements, as an ONNX model names them; without it there must be none.
  OpenSource open{};
};

/// A file to open, and the member of it that is the state dict, if one was named.
struct FileMember {
  std::filesystem::path file;
  std::string member{};
};

/// Splits FILE or FILE:MEMBER, where both may have colons: the file is the longest part that exists.
[[nodiscard]] FileMember split_member(const std::filesystem::path& given);

[[nodiscard]] const FileFormat& format_of(const Source& file, const std::filesystem::path& path);

/// Opens a file of weights of that format.
///
/// Errors    those of the format; Unsupported for one that is not read; Argument for a member of a file that
///           has none
[[nodiscard]] Shard open_shard(ShardRequest request, const FileFormat& format);

/// Opens a GGUF file, which may be a part of a model.
[[nodiscard]] Shard open_gguf(std::unique_ptr<Source> file, const std::filesystem::path& path);

/// What was parsed of `file`, whose format is called `format`.
[[nodiscard]] Shard take_parsed(std::unique_ptr<Source> file, ParsedFile parsed, std::string_view format);

/// Opens a file of a format that is parsed as a whole; messages begin with that format's name.
using Parse = std::function<ParsedFile(std::span<const std::byte>, const std::string& where)>;
[[nodiscard]] Shard open_parsed(ShardRequest request, std::string_view format, const Parse& parse);

/// Indices of more bytes are not read.
inline constexpr std::uint64_t largest_index = std::uint64_t{64} << 20;

/// Maps tensor names to the names of their shard files, from the text of a `*.safetensors.index.json` or
/// `*.bin.index.json`. Shard names are plain names in the index's own folder.
///
/// Errors    Format; messages begin with `where`
[[nodiscard]] std::map<std::string, std::string, std::less<>> parse_shard_index(std::string_view text,
                                                                                const std::string& where);

}  // namespace normscope::files
