#pragma once

#include <filesystem>
#include <optional>
#include <string>

/// File layout of model folders of the Hugging Face hub.
namespace normscope::checkpoint {

/// The file to open for `path`: itself, or, for a folder, its `model.safetensors`, else its
/// `model.safetensors.index.json`, else its only `.safetensors` file, else its `pytorch_model.bin` or
/// `pytorch_model.bin.index.json`, else its only PyTorch, ONNX or GGUF file (the first part of a model that
/// is split), else its only Flax msgpack, Keras or TensorFlow file. NAME stands for NAME.index if that
/// exists. Folders and names of the hub's cache are resolved by `hub_cache.hpp`.
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

}  // namespace normscope::checkpoint
