#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bytes/zip_files.hpp"
#include "checkpoint/onnx_files.hpp"

namespace normscope::test {

/// CRC-32C, bit by bit.
inline std::uint32_t crc32c_of(const std::string& bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

inline std::string tensorflow_varint(std::uint64_t value) { return Proto().varint(value).text(); }

/// An entry of a block, which shares the first `shared` bytes of its key with the entry before it.
inline std::string level_entry(const std::string& key, const std::string& value, std::uint64_t shared = 0) {
  return tensorflow_varint(shared) + tensorflow_varint(key.size()) + tensorflow_varint(value.size()) + key +
         value;
}
/// A list of one restart.
inline const std::string one_restart = le(std::uint32_t{0}) + le(std::uint32_t{1});

/// The index of a TensorFlow checkpoint, written block by block.
class LevelFile {
 public:
  /// Adds a block and returns where it is.
  std::string block(const std::string& body, char type = 0) {
    const std::string place = tensorflow_varint(text_.size()) + tensorflow_varint(body.size());
    const std::string typed = body + type;
    const std::uint32_t crc = crc32c_of(typed);
    text_ += typed + le((crc >> 15U | crc << 17U) + 0xa282ead8U);
    return place;
  }
  /// The file with a list of these blocks.
  [[nodiscard]] std::string file(const std::vector<std::string>& blocks) const {
    LevelFile whole = *this;
    const std::string meta = whole.block(one_restart);
    std::string list;
    for (const std::string& block : blocks) list += level_entry("x", block);
    return whole.ended(meta + whole.block(list + one_restart));
  }
  /// The file with that footer.
  [[nodiscard]] std::string ended(std::string footer) const {
    footer.resize(40, '\0');
    return text_ + footer + le(std::uint64_t{0xdb4775248b80fb57});
  }

 private:
  std::string text_;
};

/// The index of these entries, whose keys are tensors' names; the header has an empty one.
inline std::string tensorflow_index(const std::vector<std::pair<std::string, Proto>>& entries) {
  std::string body;
  for (const auto& [key, value] : entries) body += level_entry(key, value.text());
  LevelFile file;
  const std::string block = file.block(body + one_restart);
  return file.file({block});
}

}  // namespace normscope::test
