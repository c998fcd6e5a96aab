#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <normscope/core/dtype.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>

namespace normscope::files {

struct GgufBlocks;

/// How a tensor of a GGUF file is stored.
struct GgufType {
  std::uint32_t number = 0;           ///< ggml's
  std::optional<Dtype> dtype{};       ///< of elements that are stored one by one
  BlockFormat blocks{};               ///< else, of blocks of elements
  const GgufBlocks* codes = nullptr;  ///< how blocks are decoded; null for a type that is not read
};

/// The type of that number, or null.
[[nodiscard]] const GgufType* gguf_type(std::uint32_t number);

/// The elements of whole blocks of that type; null if it is not read. Both outlive the result.
[[nodiscard]] std::unique_ptr<QuantizedSource> decoded_blocks(const GgufType& type, StoredBytes stored);

}  // namespace normscope::files
