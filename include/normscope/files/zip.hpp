#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/files/source.hpp>

namespace normscope::files {

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
  return packed <= small / 64 ? small : packed > SIZE_MAX / 64 ? SIZE_MAX : 64 * packed;
}

/// The members of the zip in `bytes`, including zip64. Multi-part archives are not supported. Of a zip that
/// is not in memory, only the directory is read, into `held`, which then has the members' names.
///
/// Errors    Format for any offset or size outside the file, and for duplicate names; Io; Unsupported for a
///           directory beyond `largest_held`; messages begin with `where`
[[nodiscard]] std::vector<ZipMember> read_zip_directory(const StoredBytes& bytes,
                                                        std::vector<std::byte>& held,
                                                        const std::string& where);
/// Lists the members of a zip in memory, where the members' names are in `bytes`.
[[nodiscard]] std::vector<ZipMember> read_zip_directory(std::span<const std::byte> bytes,
                                                        const std::string& where);

/// A member's bytes in the file, compressed or not; the local header only determines its own length.
///
/// Errors    Format, Io
[[nodiscard]] StoredBytes packed_bytes(const StoredBytes& bytes, const ZipMember& member,
                                       const std::string& where);

/// The bytes of an uncompressed member, in place; its CRC is not checked.
///
/// Errors    Format, Io; Unsupported for a compressed or encrypted member
[[nodiscard]] StoredBytes stored_member(const StoredBytes& bytes, const ZipMember& member,
                                        const std::string& where);

/// Reads every member through and compares its CRC with the stated one, of which 0 means none.
/// Errors    Format, naming the first member that differs; as `ZipStream`
void check_zip(std::span<const std::byte> bytes, const std::string& where);

/// Decompresses one member, stored or deflated, front to back. Of a zip that is not in memory, the member as
/// it is stored is held.
class ZipStream {
 public:
  /// Errors    Format, Io; Unsupported for encryption, other methods and a member beyond `largest_held`
  ZipStream(const StoredBytes& bytes, const ZipMember& member, const std::string& where);
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

/// Decompresses a zlib stream that holds exactly `out.size()` bytes.
///
/// Errors    Format for a stream that is damaged, shorter or longer; Unsupported in builds without zlib;
///           messages begin with `where`
void inflate_zlib(std::span<const std::byte> packed, std::span<std::byte> out, const std::string& where);

}  // namespace normscope::files
