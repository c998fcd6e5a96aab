#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

/// A cryptographic hash, to check that bytes are unchanged and that inputs are those of a result.
namespace normscope {

using Digest = std::array<std::byte, 32>;

/// SHA-256 of bytes supplied in pieces.
///
/// Source    [FIPS 180-4]
///
/// Accuracy  test: Sha256.MatchesTheStandardsExamples
///
/// Cost      about 250 MB a second on one thread
class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);
  /// Requires  nothing is added afterwards
  [[nodiscard]] Digest finish();

 private:
  void compress(const std::byte* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t size_ = 0;
};

[[nodiscard]] Digest sha256(std::span<const std::byte> bytes);

/// As 64 hexadecimal digits.
[[nodiscard]] std::string to_hex(const Digest& digest);

/// Size of the pieces of `piecewise_sha256`.
inline constexpr std::size_t sha256_piece = std::size_t{1} << 20U;

/// SHA-256 of the SHA-256 of each piece of 2²⁰ bytes, the last as short as it is, one after the other: large
/// arrays are hashed on all threads.
///
/// Accuracy  test: Sha256.PiecesAreHashedOnAnyNumberOfThreads
[[nodiscard]] Digest piecewise_sha256(std::span<const std::byte> bytes, unsigned threads = 0);

}  // namespace normscope
