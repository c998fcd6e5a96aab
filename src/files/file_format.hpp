#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <normscope/files/zip.hpp>

namespace normscope::files {

struct Shard;
struct ShardRequest;

/// A format of files. Each has one row, in the source that reads it, and those that are not read in
/// file_format.cpp, which lists all. Rows are compared by address.
struct FileFormat {
  std::string_view name;  ///< in messages, such as "GGUF"
  /// Whether a file that begins with these bytes, at most 4096, is of the format.
  bool (*begins)(std::string_view text) = nullptr;
  /// Whether a file of that name is, where the bytes of no format tell.
  bool (*named)(const std::filesystem::path& path) = nullptr;
  /// Opens a file of weights; null for arrays, for files of parts, and for formats that are not read.
  Shard (*open)(ShardRequest request) = nullptr;
  bool has_members = false;      ///< a file may hold several state dicts
  bool stands_alone = false;     ///< the only such file of a folder without others is its model
  bool by_tensor = false;        ///< opened without a mapping, for reading tensor by tensor
  std::string_view converter{};  ///< the extra of the Python package that converts it, if it is not read
  std::string_view advice{};     ///< what else to do with a file that is not read
};

namespace formats {
extern const FileFormat safetensors, shard_index, npy, zip, idx, gguf, pickle, hdf5, compressed, unknown;
}  // namespace formats

/// The format of a file, from its first bytes and, if these are ambiguous, from its name.
[[nodiscard]] const FileFormat& file_format(const std::filesystem::path& path,
                                            std::span<const std::byte> bytes);

/// Whether a zip with these members was written by Keras 3, recognized by its weights.
[[nodiscard]] bool is_keras_archive(std::span<const ZipMember> members);

/// The formats that a checkpoint may have, for messages.
extern const std::string_view formats_read;

/// Advice for a file of a format that is not read, such as "export it to safetensors"; empty if there is
/// none.
[[nodiscard]] std::string advice(const FileFormat& format);

/// Whether the path has one of these extensions.
[[nodiscard]] bool has_extension(const std::filesystem::path& path,
                                 std::initializer_list<std::string_view> extensions);

// The cache of downloads of Hugging Face's libraries:
// CACHE/models--ORG--NAME/snapshots/REVISION/FILES, with the revision of a branch in refs/BRANCH. Nothing is
// ever fetched.

/// For a folder models--ORG--NAME of the cache the folder of its snapshot: that of refs/main, else its only
/// one; any other path stays as it is.
///
/// Errors    Argument for a folder with several snapshots and no refs/main; Io
[[nodiscard]] std::filesystem::path snapshot_of(const std::filesystem::path& path);

/// The folder of a model named "NAME" or "ORG/NAME" in the cache, whether it exists or not: in $HF_HUB_CACHE,
/// else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. Empty if `name` is
/// no such name.
[[nodiscard]] std::filesystem::path place_in_cache(const std::filesystem::path& name);

/// The snapshot of a model of that name; nothing where the cache does not hold it.
///
/// Errors    as `snapshot_of`
[[nodiscard]] std::optional<std::filesystem::path> cached(const std::filesystem::path& name);

// File layout of model folders of the Hugging Face hub.

/// The file to open for `path`: itself, or, for a folder, its `model.safetensors`, else its
/// `model.safetensors.index.json` (which may list that file alone, as mlx-lm writes them), else its only
/// `.safetensors` file, else its `pytorch_model.bin` or `pytorch_model.bin.index.json`, else its only
/// PyTorch, ONNX or GGUF file (the first part of a model that is split). NAME stands for NAME.index if that
/// exists, as TensorFlow names checkpoints. Folders and names of the hub's cache are resolved by
/// `snapshot_of`.
///
/// Errors    Argument for a folder with several candidates; Unsupported for one with other formats only; Io
[[nodiscard]] std::filesystem::path entry_file(const std::filesystem::path& path);

/// Whether a `config.json` in the same folder describes weights of this file name. Files of other names may
/// share a folder with unrelated files.
[[nodiscard]] bool is_hub_weights_name(const std::string& name);

/// Text of the `config.json` in the folder of `file`.
///
/// Errors    Io; Format beyond 16 MiB
[[nodiscard]] std::optional<std::string> config_beside(const std::filesystem::path& file);

}  // namespace normscope::files
