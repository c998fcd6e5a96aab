#include "hub_folder.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include <normscope/bytes/quote.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

#include "file_format.hpp"
#include "gguf_parts.hpp"
#include "hub_cache.hpp"

namespace normscope::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* torch_weights = "pytorch_model.bin";
constexpr const char* torch_index = "pytorch_model.bin.index.json";
constexpr std::size_t largest_config = std::size_t{16} << 20;

// A path that cannot be examined, or a dangling link, counts as existing: opening it then reports the error.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

std::vector<fs::path> list(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths = list_folder(folder, error);
  if (error) {
    throw Error(ErrorCode::Io,
                fmt::format("checkpoint: {}: cannot be listed: {}", folder.string(), error.message()));
  }
  return paths;
}

std::string quoted_name(const fs::path& path) { return bytes::quote(path.filename().string()); }

/// The single file of weights or the index of its shards, whichever exists.
std::optional<fs::path> single_or_index(const fs::path& folder, const char* single, const char* index) {
  const bool has_single = is_there(folder / single);
  const bool has_index = is_there(folder / index);
  if (has_single && has_index) {
    throw Error(ErrorCode::Argument,
                fmt::format("checkpoint: {}: has {} and {}, expected one of them; name the file to open",
                            folder.string(), single, index));
  }
  if (has_single) return folder / single;
  if (has_index) return folder / index;
  return std::nullopt;
}

/// The only .safetensors file, otherwise PyTorch's weights file or index, otherwise the only file of a format
/// that is read.
fs::path other_weights(const fs::path& folder) {
  std::vector<fs::path> candidates;
  std::vector<fs::path> others;
  std::string unread;
  for (const fs::path& path : list(folder)) {
    const FileFormat format = file_format(path, {});
    if (format == FileFormat::safetensors) candidates.push_back(path);
    if (format == FileFormat::gguf) {
      // The first part of a model stands for all of them.
      const std::optional<GgufPart> part = gguf_part(path.filename().string());
      if (!part || part->number == 1) others.push_back(path);
    } else if (format == FileFormat::pickle || format == FileFormat::onnx) {
      others.push_back(path);
    } else if (!advice(format).empty()) {
      unread = fmt::format("; {} is {}, which is not read: {}", quoted_name(path), describe(format),
                           advice(format));
    }
  }
  if (candidates.size() == 1) return candidates.front();
  if (candidates.size() > 1) {
    throw Error(ErrorCode::Argument,
                fmt::format("checkpoint: {}: has {} .safetensors files ({}, {}{}) and no index, expected one",
                            folder.string(), candidates.size(), quoted_name(candidates[0]),
                            quoted_name(candidates[1]), candidates.size() > 2 ? ", ..." : ""));
  }
  if (const auto torch = single_or_index(folder, torch_weights, torch_index)) return *torch;
  if (others.size() == 1) return others.front();
  if (others.size() > 1) {
    throw Error(ErrorCode::Argument,
                fmt::format("checkpoint: {}: has {} files of weights ({}, {}{}), expected one; name the file "
                            "to open",
                            folder.string(), others.size(), quoted_name(others[0]), quoted_name(others[1]),
                            others.size() > 2 ? ", ..." : ""));
  }
  throw Error(unread.empty() ? ErrorCode::Io : ErrorCode::Unsupported,
              fmt::format("checkpoint: {}: has no .safetensors file and no {}{}", folder.string(),
                          torch_weights, unread));
}

/// Names of models may contain a dot (Llama-3.2-1B); a file's extension begins with a letter.
bool has_file_extension(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension.size() > 1 && std::isalpha(static_cast<unsigned char>(extension[1])) != 0;
}

fs::path model_in_cache(const fs::path& name) {
  if (const std::optional<fs::path> snapshot = cached(name)) return *snapshot;
  const fs::path place = place_in_cache(name);
  if (place.empty() || has_file_extension(name)) return name;
  throw Error(ErrorCode::Io,
              fmt::format("checkpoint: {}: no such file or folder, and no model of that name in "
                          "the hub's cache ({})",
                          name.string(), place.string()));
}

bool is_shard_name(std::string_view name, std::string_view begin, std::string_view end) {
  return name.size() > begin.size() + end.size() && name.substr(0, begin.size()) == begin &&
         name.substr(name.size() - end.size()) == end && name.find("-of-") != std::string_view::npos;
}

}  // namespace

fs::path entry_file(const fs::path& given) {
  std::error_code ignored;
  // TensorFlow names a checkpoint by what its files begin with.
  if (fs::path index = given.string() + ".index"; !is_there(given) && is_there(index)) return index;
  fs::path path = is_there(given) ? snapshot_of(given) : model_in_cache(given);
  if (!fs::is_directory(path, ignored)) return path;
  const auto hub = single_or_index(path, "model.safetensors", "model.safetensors.index.json");
  return hub ? *hub : other_weights(path);
}

bool is_hub_weights_name(const std::string& name) {
  return name == "model.safetensors" || name == torch_weights ||
         is_shard_name(name, "model-", ".safetensors") || is_shard_name(name, "pytorch_model-", ".bin");
}

std::optional<std::string> config_beside(const fs::path& file) {
  const fs::path path = file.parent_path() / "config.json";
  if (!is_there(path)) return std::nullopt;
  const MappedFile config(path);
  const std::span<const std::byte> bytes = config.bytes();
  if (bytes.size() > largest_config) {
    throw Error(ErrorCode::Format, fmt::format("checkpoint: {}: has {} bytes, expected at most {}",
                                               path.string(), bytes.size(), largest_config));
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace normscope::checkpoint
