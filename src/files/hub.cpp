#include "file_format.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/files/source.hpp>

#include "readers.hpp"
#include "shard.hpp"

namespace normscope::files {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_prefix = "models--";
/// A revision is a hash of 40 digits; longer contents of refs/main are not a revision.
constexpr std::size_t longest_revision = 64;

bool is_name_part(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && std::all_of(part.begin(), part.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path cache() {
  if (const std::string hub = environment("HF_HUB_CACHE"); !hub.empty()) return hub;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) {
    return fs::path(xdg) / "huggingface/hub";
  }
  const std::string home = environment("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache/huggingface/hub";
}

/// The revision in refs/main; empty if the file contains no revision.
std::string main_revision(const fs::path& folder) {
  std::ifstream file(folder / "refs/main", std::ios::binary);
  std::string text(longest_revision + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.size() <= longest_revision && is_name_part(text) ? text : "";
}

}  // namespace

fs::path snapshot_of(const fs::path& path) {
  std::error_code error;
  const fs::path folder = path.filename().empty() ? path.parent_path() : path;
  if (folder.filename().string().rfind(folder_prefix, 0) != 0 ||
      !fs::is_directory(folder / "snapshots", error)) {
    return path;
  }
  const std::string revision = main_revision(folder);
  if (!revision.empty() && fs::is_directory(folder / "snapshots" / revision, error)) {
    return folder / "snapshots" / revision;
  }
  const std::vector<fs::path> snapshots = list_folder(folder / "snapshots", error);
  if (snapshots.size() == 1) return snapshots.front();
  throw Error(ErrorCode::Argument,
              fmt::format("checkpoint: {}: has {} snapshots and no refs/main that names one, expected one; "
                          "name the snapshot to open",
                          path.string(), snapshots.size()));
}

fs::path place_in_cache(const fs::path& name) {
  const std::string text = name.string();
  const std::size_t slash = text.find('/');
  const std::string_view all = text;
  const bool is_name = slash == std::string::npos
                           ? is_name_part(all)
                           : is_name_part(all.substr(0, slash)) && is_name_part(all.substr(slash + 1));
  const fs::path folder = cache();
  if (!is_name || folder.empty()) return {};
  std::string entry = std::string(folder_prefix) + text;
  if (slash != std::string::npos) entry.replace(folder_prefix.size() + slash, 1, "--");
  return folder / entry;
}

std::optional<fs::path> cached(const fs::path& name) {
  const fs::path folder = place_in_cache(name);
  std::error_code ignored;
  if (folder.empty() || !fs::is_directory(folder, ignored)) return std::nullopt;
  return snapshot_of(folder);
}

namespace {

constexpr const char* torch_weights = "pytorch_model.bin";
constexpr const char* torch_index = "pytorch_model.bin.index.json";
constexpr const char* adapter_config = "adapter_config.json";
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

std::string quoted_name(const fs::path& path) { return quote(path.filename().string()); }

/// Whether an index lists one file alone, as mlx-lm writes one beside every model.
bool lists_only(const fs::path& index, const char* single) {
  std::error_code ignored;
  if (fs::file_size(index, ignored) > largest_index || ignored) return false;
  try {
    const MappedFile file(index);
    const std::span<const std::byte> text = file.bytes();
    const auto shards = parse_shard_index({reinterpret_cast<const char*>(text.data()), text.size()}, "");
    return std::all_of(shards.begin(), shards.end(),
                       [single](const auto& listed) { return listed.second == single; });
  } catch (const Error&) {
    return false;
  }
}

/// The single file of weights or the index of its shards, whichever exists; the index if it lists the file.
std::optional<fs::path> single_or_index(const fs::path& folder, const char* single, const char* index) {
  const bool has_single = is_there(folder / single);
  const bool has_index = is_there(folder / index);
  if (has_single && has_index && lists_only(folder / index, single)) return folder / index;
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
    const FileFormat& format = file_format(path, {});
    if (&format == &formats::safetensors) {
      candidates.push_back(path);
    } else if (format.stands_alone) {
      // The first part of a model stands for all of them.
      const std::optional<GgufPart> part = gguf_part(path.filename().string());
      if (!part || part->number == 1) others.push_back(path);
    } else if (!advice(format).empty()) {
      unread =
          fmt::format("; {} is {}, which is not read: {}", quoted_name(path), format.name, advice(format));
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
  fs::path weights = hub ? *hub : other_weights(path);
  // What loads such a folder adds the adapter's matrices to the weights.
  if (is_there(path / adapter_config)) {
    throw Error(
        ErrorCode::Unsupported,
        fmt::format("checkpoint: {}: has {}, an adapter that changes what the model computes; merge it "
                    "into the weights, or name {} to open that file alone",
                    path.string(), adapter_config, quoted_name(weights)));
  }
  return weights;
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

}  // namespace normscope::files
