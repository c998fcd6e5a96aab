#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/dtype.hpp>

/// The element types of GGUF, numbered as in ggml.
namespace normscope::checkpoint {

/// How a tensor of a GGUF file is stored.
struct GgufType {
  std::uint32_t number = 0;
  std::optional<Dtype> dtype{};  ///< of elements that are stored one by one
  BlockFormat blocks{};          ///< else, of blocks of elements
};

/// The type of that number, or null.
[[nodiscard]] const GgufType* gguf_type(std::uint32_t number);

/// Elements of a tensor in blocks, decoded to little-endian float32 as they are asked for.
class DecodedBlocks : public bytes::Source {
 public:
  /// `stored` are whole blocks of `format`, which has a decoder; both outlive the object.
  DecodedBlocks(const BlockFormat& format, bytes::StoredBytes stored) : format_(format), stored_(stored) {}

  [[nodiscard]] std::uint64_t size() const override;
  void read(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  const BlockFormat& format_;
  bytes::StoredBytes stored_;
};

}  // namespace normscope::checkpoint
