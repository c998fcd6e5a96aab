#include "hub_folder.hpp"

#include <algorithm>
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
#include "hub_cache.hpp"

namespace normscope::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* torch_weights = "pytorch_model.bin";
constexpr std::size_t largest_config = std::size_t{16} << 20;

// A path that cannot be examined, or a dangling link, counts as existing: opening it then reports the error.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

std::vector<fs::path> list(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) paths.push_back(entry->path());
  if (error) {
    throw Error(ErrorCode::Io,
                fmt::format("checkpoint: {}: cannot be listed: {}", folder.string(), error.message()));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string quoted_name(const fs::path& path) { return bytes::quote(path.filename().string()); }

/// The only .safetensors file, otherwise PyTorch's weights file, otherwise the only file of a format that is
/// read.
fs::path other_weights(const fs::path& folder) {
  std::vector<fs::path> candidates;
  std::vector<fs::path> others;
  std::string unread;
  for (const fs::path& path : list(folder)) {
    const FileFormat format = file_format(path, {});
    if (format == FileFormat::safetensors) candidates.push_back(path);
    if (format == FileFormat::pickle || format == FileFormat::onnx) {
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
  if (is_there(folder / torch_weights)) return folder / torch_weights;
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

}  // namespace

fs::path entry_file(const fs::path& given) {
  std::error_code ignored;
  const fs::path path = is_there(given) ? snapshot_of(given) : cached(given).value_or(given);
  if (!fs::is_directory(path, ignored)) return path;
  fs::path single = path / "model.safetensors";
  fs::path index = path / "model.safetensors.index.json";
  if (!is_there(single)) return is_there(index) ? index : other_weights(path);
  if (!is_there(index)) return single;
  throw Error(ErrorCode::Argument,
              fmt::format("checkpoint: {}: has model.safetensors and model.safetensors.index.json, expected "
                          "one of them; name the file to open",
                          path.string()));
}

bool is_hub_weights_name(const std::string& name) {
  const std::string_view begin = "model-";
  const std::string_view end = ".safetensors";
  return name == "model.safetensors" || name == torch_weights ||
         (name.size() > begin.size() + end.size() && name.compare(0, begin.size(), begin) == 0 &&
          name.compare(name.size() - end.size(), end.size(), end) == 0 &&
          name.find("-of-") != std::string::npos);
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
