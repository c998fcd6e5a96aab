#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normscope::checkpoint {

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

/// Values of `ZipMember::method` that are read.
inline constexpr std::uint16_t zip_stored = 0;
inline constexpr std::uint16_t zip_deflated = 8;

/// The members of the zip that `bytes` hold, zip64 included. Archives in parts are not read.
/// Errors    Format for any offset or size that leaves the file, and for a name that comes twice;
///           messages begin with `where`
[[nodiscard]] std::vector<ZipMember> read_zip_directory(std::span<const std::byte> bytes,
                                                        const std::string& where);

/// A member's bytes as they lie in the file, packed or not; the local header only tells how long it is
/// itself. Errors    Format
[[nodiscard]] std::span<const std::byte> packed_bytes(std::span<const std::byte> bytes,
                                                      const ZipMember& member, const std::string& where);

/// The bytes of a member that is stored as it is, in place; its CRC is not looked at.
/// Errors    Format; Unsupported for a packed or encrypted member
[[nodiscard]] std::span<const std::byte> stored_member(std::span<const std::byte> bytes,
                                                       const ZipMember& member, const std::string& where);

/// Unpacks one member, stored or deflated, front to back.
class ZipStream {
 public:
  /// Errors    Format; Unsupported for encryption and other methods
  ZipStream(std::span<const std::byte> bytes, const ZipMember& member, const std::string& where);
  ZipStream(const ZipStream&) = delete;
  ZipStream& operator=(const ZipStream&) = delete;
  ~ZipStream();

  /// Fills `out` with the next bytes.
  /// Errors    Format if the member ends before or is broken
  void read(std::span<std::byte> out);
  /// Checks that all was read and that it is what was packed.
  /// Errors    Format
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace normscope::checkpoint
