#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <normscope/files/zip.hpp>

namespace normscope::files {

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
  saved_model,
  tensorflow_index,
  tensorflow_data,
  tflite,
  msgpack,
  core_ml,
  tensorrt,
  html,
  compressed,
  unknown
};

/// The format of a file, from its first bytes and, if these are ambiguous, from its name.
[[nodiscard]] FileFormat file_format(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// The format's common name, such as "GGUF".
[[nodiscard]] std::string_view describe(FileFormat format);

/// Whether a zip with these members was written by Keras 3, recognized by its weights.
[[nodiscard]] bool is_keras_archive(std::span<const ZipMember> members);

/// Advice for a file of an unsupported format, such as "export it to safetensors"; empty if there is none.
[[nodiscard]] std::string advice(FileFormat format);

}  // namespace normscope::files
