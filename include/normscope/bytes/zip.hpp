#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normscope::bytes {

/// A file inside a zip, as the central directory describes it.
struct ZipMember {
  std::string_view name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t local_header = 0;
};

/// Supported values of `ZipMember::method`.
inline constexpr std::uint16_t zip_stored = 0;
inline constexpr std::uint16_t zip_deflated = 8;

/// No deflate stream unpacks to more than this many times its size.
inline constexpr std::uint64_t largest_deflate_ratio = 1032;

/// Most bytes of one array that are unpacked from `packed` bytes of deflate: 64 times as many, or 256 MiB.
/// The format allows 1032 times as many, which constant arrays reach, and files that are made to exhaust
/// memory.
[[nodiscard]] constexpr std::uint64_t most_unpacked(std::uint64_t packed) {
  constexpr std::uint64_t small = std::uint64_t{256} << 20;
  return packed <= small / 64 ? small : packed > UINT64_MAX / 64 ? UINT64_MAX : 64 * packed;
}

/// The members of the zip in `bytes`, including zip64. Multi-part archives are not supported.
///
/// Errors    Format for any offset or size outside the file, and for duplicate names; messages begin with
///           `where`
[[nodiscard]] std::vector<ZipMember> read_zip_directory(std::span<const std::byte> bytes,
                                                        const std::string& where);

/// A member's bytes in the file, compressed or not; the local header only determines its own length.
///
/// Errors    Format
[[nodiscard]] std::span<const std::byte> packed_bytes(std::span<const std::byte> bytes,
                                                      const ZipMember& member, const std::string& where);

/// The bytes of an uncompressed member, in place; its CRC is not checked.
///
/// Errors    Format; Unsupported for a compressed or encrypted member
[[nodiscard]] std::span<const std::byte> stored_member(std::span<const std::byte> bytes,
                                                       const ZipMember& member, const std::string& where);

/// Reads every member through and compares its CRC with the stated one, of which 0 means none.
/// Errors    Format, naming the first member that differs; as `ZipStream`
void check_zip(std::span<const std::byte> bytes, const std::string& where);

/// Decompresses one member, stored or deflated, front to back.
class ZipStream {
 public:
  /// Errors    Format; Unsupported for encryption and other methods
  ZipStream(std::span<const std::byte> bytes, const ZipMember& member, const std::string& where);
  ZipStream(const ZipStream&) = delete;
  ZipStream& operator=(const ZipStream&) = delete;
  ~ZipStream();

  /// Fills `out` with the next bytes.
  ///
  /// Errors    Format if the member ends early or is damaged
  void read(std::span<std::byte> out);
  /// Checks that everything was read and that its size and CRC are right.
  ///
  /// Errors    Format
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace normscope::bytes
