#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace normscope::checkpoint {

/// The CRC-32C (Castagnoli) of `bytes` appended to bytes with the CRC `before` (0 for none).
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The form in which LevelDB and TensorFlow store a CRC.
[[nodiscard]] inline std::uint32_t masked_crc32c(std::uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

}  // namespace normscope::checkpoint
