#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>

namespace normscope::test {

/// The bytes of a safetensors checkpoint in one file, to change and to write again.
struct StoredParts {
  struct Part {
    Dtype dtype = Dtype::F32;
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> bytes;
  };

  /// Writes the one file.
  void write(const std::filesystem::path& path) const {
    std::vector<files::NewTensor> stored;
    for (const auto& [name, part] : tensors) stored.push_back({name, part.dtype, part.shape, part.bytes});
    files::write_safetensors(path, stored, metadata);
  }

  /// Writes a folder and opens it.
  [[nodiscard]] files::Checkpoint open(const std::filesystem::path& folder) const {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << config;
    write(folder / "model.safetensors");
    return files::Checkpoint(folder);
  }

  std::map<std::string, Part> tensors{};
  std::map<std::string, std::string, std::less<>> metadata{};
  std::string config{};
};

inline StoredParts parts_of(const files::Checkpoint& source) {
  StoredParts result;
  for (const files::Tensor& tensor : source.tensors()) {
    const auto bytes = tensor.bytes.memory();
    result.tensors[std::string(tensor.name)] = {
        tensor.dtype, {tensor.shape.begin(), tensor.shape.end()}, {bytes.begin(), bytes.end()}};
  }
  result.metadata = source.metadata();
  result.config = source.config_text().value_or("");
  return result;
}

}  // namespace normscope::test
