#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/safetensors.hpp>
#include <normscope/models/model.hpp>

#include "support/scratch.hpp"

namespace normscope::test {

/// A small checkpoint written by name and shape. Values count up in eighths, so that no two of a
/// tensor's first 2,000 are the same.
class Synthetic {
 public:
  std::map<std::string, std::string, std::less<>> metadata;

  Synthetic& add(const std::string& name, std::vector<std::uint64_t> shape, Dtype dtype = Dtype::F32) {
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : shape) elements *= extent;
    std::vector<std::byte> bytes(elements * bits(dtype) / 8);
    if (dtype == Dtype::F32) {
      std::vector<double> values(elements);
      for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<double>(i + 1) / 8 + seed_;
      encode(dtype, values, bytes);
    }
    seed_ += 1.0;
    tensors_[name] = {std::move(shape), dtype, std::move(bytes)};
    return *this;
  }
  /// Other values for a tensor of float32.
  Synthetic& set(const std::string& name, const std::vector<double>& values) {
    encode(Dtype::F32, values, tensors_.at(name).bytes);
    return *this;
  }
  /// name.weight and name.bias of a norm.
  Synthetic& norm(const std::string& name, std::uint64_t width) {
    return add(name + ".weight", {width}).add(name + ".bias", {width});
  }
  Synthetic& linear(const std::string& name, std::uint64_t out, std::uint64_t in, bool bias = true) {
    add(name + ".weight", {out, in});
    return bias ? add(name + ".bias", {out}) : *this;
  }
  Synthetic& remove(const std::string& name) {
    EXPECT_EQ(tensors_.erase(name), 1u) << name;
    return *this;
  }
  Synthetic& config(std::string text) {
    config_ = std::move(text);
    return *this;
  }

  /// Writes a folder as a model hub has it; `shards` > 1 spreads the tensors over that many files.
  [[nodiscard]] files::Checkpoint open(std::size_t shards = 1) const {
    const std::filesystem::path folder = *scratch_ / "model";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    if (!config_.empty()) std::ofstream(folder / "config.json") << config_;
    std::vector<std::vector<files::NewTensor>> files(shards);
    std::string index;
    std::size_t next = 0;
    for (const auto& [name, tensor] : tensors_) {
      const std::size_t shard = next++ % shards;
      files[shard].push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
      index += (index.empty() ? "\"" : ", \"") + name + "\": \"" + file_name(shard, shards) + "\"";
    }
    for (std::size_t shard = 0; shard < shards; ++shard) {
      files::write_safetensors(folder / file_name(shard, shards), files[shard], metadata);
    }
    if (shards > 1) {
      std::ofstream(folder / "model.safetensors.index.json")
          << "{\"metadata\": {}, \"weight_map\": {" << index << "}}";
    }
    return files::Checkpoint(folder);
  }
  [[nodiscard]] models::Model describe(std::size_t shards = 1) const {
    return models::describe(open(shards));
  }

 private:
  struct Stored {
    std::vector<std::uint64_t> shape;
    Dtype dtype;
    std::vector<std::byte> bytes;
  };
  static std::string file_name(std::size_t shard, std::size_t shards) {
    return shards == 1 ? "model.safetensors" : "model-" + std::to_string(shard + 1) + ".safetensors";
  }

  std::map<std::string, Stored> tensors_;
  std::string config_;
  double seed_ = 0.0;
  std::shared_ptr<Scratch> scratch_ = std::make_shared<Scratch>();
};

inline const models::Norm& norm_named(const models::Model& model, const std::string& name) {
  for (const models::Norm& norm : model.norms) {
    if (norm.name == name) return norm;
  }
  throw std::runtime_error("no norm " + name);
}

/// "role:tensor" of each, in order.
inline std::vector<std::string> names(const std::vector<models::Linear>& maps) {
  std::vector<std::string> result;
  for (const models::Linear& map : maps) result.push_back(map.role + ":" + map.weight.selector());
  return result;
}

inline bool notes_mention(const models::Model& model, const std::string& words) {
  return std::any_of(model.notes.begin(), model.notes.end(),
                     [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

/// The error that `action` throws, as "Shape: message"; empty when it throws none.
template <class Action>
std::string error_of(Action action) {
  static const std::map<ErrorCode, std::string> kNames = {{ErrorCode::Io, "Io"},
                                                          {ErrorCode::Format, "Format"},
                                                          {ErrorCode::Shape, "Shape"},
                                                          {ErrorCode::Argument, "Argument"},
                                                          {ErrorCode::Unsupported, "Unsupported"},
                                                          {ErrorCode::Cancelled, "Cancelled"}};
  try {
    action();
  } catch (const Error& error) {
    return kNames.at(error.code()) + ": " + error.what();
  }
  return {};
}

}  // namespace normscope::test
