#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "files/zip_files.hpp"

namespace normscope::test {

/// A GGUF file, written entry by entry.
class GgufFile {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;

  static std::string counted(const std::string& value) {
    return le(static_cast<std::uint64_t>(value.size())) + value;
  }

  /// An entry whose value is `bytes`.
  GgufFile& entry(const std::string& key, std::uint32_t type, const std::string& bytes) {
    entries_ += counted(key) + le(type) + bytes;
    ++entry_count_;
    return *this;
  }
  GgufFile& text(const std::string& key, const std::string& value) { return entry(key, 8, counted(value)); }
  GgufFile& number(const std::string& key, std::uint32_t value) { return entry(key, 4, le(value)); }
  GgufFile& real(const std::string& key, float value) { return entry(key, 6, le(value)); }

  /// A tensor of that type; `shape` is row-major. Its data begin where those of the previous tensor end.
  GgufFile& tensor(const std::string& name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                   const std::string& data) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment, '\0');
    return tensor_at(data_.size(), name, shape, type, data);
  }
  GgufFile& tensor_at(std::uint64_t offset, const std::string& name, const std::vector<std::uint64_t>& shape,
                      std::uint32_t type, const std::string& data) {
    tensors_ += counted(name) + le(static_cast<std::uint32_t>(shape.size()));
    for (std::size_t i = shape.size(); i-- > 0;) tensors_ += le(shape[i]);
    tensors_ += le(type) + le(offset);
    ++tensor_count_;
    data_ += data;
    return *this;
  }
  /// A float32 tensor with the elements 1, 2, 3, …
  GgufFile& floats(const std::string& name, const std::vector<std::uint64_t>& shape) {
    std::size_t count = 1;
    for (const std::uint64_t extent : shape) count *= extent;
    std::string data;
    for (std::size_t i = 1; i <= count; ++i) data += le(static_cast<float>(i));
    return tensor(name, shape, 0, data);
  }

  [[nodiscard]] std::string header() const {
    return "GGUF" + le(version) + le(tensor_count_) + le(entry_count_) + entries_ + tensors_;
  }
  [[nodiscard]] std::string file() const {
    std::string text = header();
    text.resize((text.size() + alignment - 1) / alignment * alignment, '\0');
    return text + data_;
  }

 private:
  std::string entries_;
  std::string tensors_;
  std::string data_;
  std::uint64_t entry_count_ = 0;
  std::uint64_t tensor_count_ = 0;
};

}  // namespace normscope::test
