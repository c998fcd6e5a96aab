#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace normscope::checkpoint {

enum class FileFormat {
  safetensors,
  shard_index,
  npy,
  zip,
  idx,
  gguf,
  onnx,
  pickle,
  hdf5,
  lfs_pointer,
  unknown
};

/// What a file holds, told by its first bytes and, where they say nothing, by its name.
[[nodiscard]] FileFormat file_format(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// The format as a user knows it, such as "GGUF".
[[nodiscard]] std::string_view describe(FileFormat format);

}  // namespace normscope::checkpoint
