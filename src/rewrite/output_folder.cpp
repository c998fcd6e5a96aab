#include "output_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& what) {
  throw Error(ErrorCode::Io, fmt::format("rewrite: {}: {}", path.string(), what));
}

/// Endings of files that hold weights, in the formats that folders of models have.
constexpr std::array<std::string_view, 12> weights = {".safetensors", ".bin",  ".pt", ".pth",
                                                      ".onnx",        ".gguf", ".h5", ".npz",
                                                      ".msgpack",     ".ckpt", ".ot", ".tflite"};

bool holds_weights(const fs::path& file) {
  const std::string ending = file.extension().string();
  return std::find(weights.begin(), weights.end(), ending) != weights.end();
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& path) : path_(fs::absolute(path).lexically_normal()) {
  if (path_.filename().empty()) path_ = path_.parent_path();
  std::error_code error;
  if (fs::exists(path_, error) && (!fs::is_directory(path_, error) || !fs::is_empty(path_, error))) {
    throw Error(ErrorCode::Argument,
                fmt::format("rewrite: {}: exists, expected the name of a new folder or an "
                            "empty one",
                            path.string()));
  }
  if (!fs::is_directory(path_.parent_path(), error)) fail(path, "its parent is not a folder");
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = path_.parent_path() / fmt::format(".normscope-rewrite-{}-{}", ::getpid(), attempt);
    if (fs::create_directory(temporary_, error)) return;
    if (error) break;
  }
  fail(temporary_, "cannot be created: " + error.message());
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
}

void OutputFolder::commit() {
  std::error_code error;
  fs::rename(temporary_, path_, error);  // replaces an empty folder
  if (error) fail(path_, "cannot be created: " + error.message());
  committed_ = true;
}

std::vector<std::string> copy_small_files(const fs::path& from, const fs::path& to,
                                          const std::vector<std::string>& written) {
  std::vector<std::string> left;
  std::error_code error;
  fs::directory_iterator entry(from, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (std::find(written.begin(), written.end(), name) != written.end()) continue;
    std::error_code failure;
    if (!fs::is_regular_file(entry->path(), failure) || holds_weights(entry->path())) {
      left.push_back(name);
      continue;
    }
    fs::copy_file(entry->path(), to / name, failure);
    if (failure) fail(entry->path(), "cannot be copied: " + failure.message());
  }
  if (error) fail(from, "cannot be listed: " + error.message());
  std::sort(left.begin(), left.end());
  return left;
}

}  // namespace normscope::rewrite
