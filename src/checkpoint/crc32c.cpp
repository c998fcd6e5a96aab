#include "crc32c.hpp"

#include <array>

#include <normscope/bytes/little_endian.hpp>

namespace normscope::checkpoint {
namespace {

constexpr std::size_t crc_step = 8;  ///< bytes taken at once

using CrcTables = std::array<std::array<std::uint32_t, 256>, crc_step>;

/// Entry [k][b] is the CRC of byte b with k zero bytes behind it.
constexpr CrcTables make_crc_tables() {
  constexpr std::uint32_t polynomial = 0x82f63b78u;
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? polynomial : 0u);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < crc_step; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr CrcTables crc_tables = make_crc_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  while (bytes.size() >= crc_step) {
    const auto eight = bytes::load<std::uint64_t>(bytes::take_front(bytes, crc_step)) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < crc_step; ++k) crc ^= crc_tables[crc_step - 1 - k][eight >> 8 * k & 0xff];
  }
  for (const std::byte byte : bytes)
    crc = crc >> 8 ^ crc_tables[0][(crc ^ static_cast<std::uint32_t>(byte)) & 0xff];
  return ~crc;
}

}  // namespace normscope::checkpoint
