#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "support/fixtures.hpp"
#include "support/scratch.hpp"

namespace normscope::test {

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A checkpoint in memory, to change and to write again.
class Copy {
 public:
  struct Values {
    Dtype dtype = Dtype::F32;
    std::vector<std::uint64_t> shape;
    std::vector<double> values;
  };

  explicit Copy(const std::filesystem::path& folder) {
    const files::Checkpoint source(folder);
    for (const files::Tensor& tensor : source.tensors()) {
      tensors[std::string(tensor.name)] = {
          tensor.dtype, {tensor.shape.begin(), tensor.shape.end()}, read(tensor)};
    }
    config = source.config_text().value_or("");
  }

  Copy& stored_as(Dtype dtype) {
    for (auto& [name, tensor] : tensors) tensor.dtype = dtype;
    return *this;
  }

  /// Writes it as a folder, in one file or several, and opens it.
  [[nodiscard]] files::Checkpoint open(const std::filesystem::path& folder, std::size_t shards = 1) const {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << config;
    std::vector<std::vector<files::NewTensor>> files(shards);
    std::vector<std::vector<std::byte>> bytes;
    bytes.reserve(tensors.size());
    std::string index;
    std::size_t next = 0;
    for (const auto& [name, tensor] : tensors) {
      bytes.emplace_back(tensor.values.size() * bits(tensor.dtype) / 8);
      encode(tensor.dtype, tensor.values, bytes.back());
      const std::size_t shard = next++ % shards;
      files[shard].push_back({name, tensor.dtype, tensor.shape, bytes.back()});
      index += (index.empty() ? "\"" : ", \"") + name + "\": \"" + file_name(shard, shards) + "\"";
    }
    for (std::size_t shard = 0; shard < shards; ++shard) {
      files::write_safetensors(folder / file_name(shard, shards), files[shard], {{"format", "pt"}});
    }
    if (shards > 1) {
      std::ofstream(folder / "model.safetensors.index.json")
          << "{\"metadata\": {\"total_size\": 0}, \"weight_map\": {" << index << "}}";
    }
    return files::Checkpoint(folder);
  }

  static std::string file_name(std::size_t shard, std::size_t shards) {
    return shards == 1 ? "model.safetensors" : "model-" + std::to_string(shard + 1) + ".safetensors";
  }

  std::map<std::string, Values> tensors;
  std::string config;
};

/// A checkpoint, its rewrite by `options`, and the result opened again.
struct Rewritten {
  Rewritten(const files::Checkpoint& source, const rewrite::Options& options, const std::filesystem::path& to)
      : model(models::describe(source)),
        plan(rewrite::make_plan(source, model, options)),
        result(rewrite::write(source, model, plan, to)),
        output(to),
        model_after(models::describe(output)) {}

  models::Model model;
  rewrite::Plan plan;
  rewrite::Result result;
  files::Checkpoint output;
  models::Model model_after;
};

}  // namespace normscope::test
