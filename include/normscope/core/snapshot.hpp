#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <normscope/core/error.hpp>

/// Serializes plain values as their bytes in memory, for reading by the same program on the same kind of
/// machine.
namespace normscope {

class Packer {
 public:
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof value);
  }
  /// Its length, then its values.
  template <typename T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(values.size());
    append(values.data(), values.size() * sizeof(T));
  }

  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void append(const void* data, std::size_t size) {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + size);
    if (size > 0) std::memcpy(bytes_.data() + before, data, size);
  }

  std::vector<std::byte> bytes_{};
};

/// Reads values in the order in which they were written; errors have the message `misfit`.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes,
                    std::string misfit = "packed values: fewer or more bytes than were put")
      : rest_(bytes), misfit_(std::move(misfit)) {}

  /// Errors    Format if there are too few bytes
  template <typename T>
  void get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    take(&value, 1, sizeof value);
  }
  /// Errors    Format for a byte that is neither 0 nor 1
  void get(bool& value) {
    std::uint8_t byte = 0;
    get(byte);
    expect(byte <= 1);
    value = byte == 1;
  }
  /// Errors    Format if there are too few bytes, or the length is invalid
  template <typename T>
  void get(std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::size_t size = 0;
    get(size);
    expect(size <= rest_.size() / sizeof(T));
    values.resize(size);
    take(values.data(), size, sizeof(T));
  }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  /// Errors    Format if bytes remain
  void finish() const { expect(at_end()); }

 private:
  void expect(bool holds) const {
    if (!holds) throw Error(ErrorCode::Format, misfit_);
  }
  void take(void* data, std::size_t count, std::size_t size) {
    expect(count <= rest_.size() / size);
    if (count > 0) std::memcpy(data, rest_.data(), count * size);
    rest_ = rest_.subspan(count * size);
  }

  std::span<const std::byte> rest_;
  std::string misfit_;
};

// A cryptographic hash, to check that bytes are unchanged and that inputs are those of a result.

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

// The file format for saved states of long runs. A snapshot states the kind of run and the version of its
// layout, contains a hash of the run's inputs, and ends with a hash of all its bytes, so that any changed
// bit is detected. It is not trusted: readers check every value and every proof as for any untrusted file.

struct SnapshotKind {
  std::string_view name;         ///< of the run, as in messages: "reach"
  std::uint32_t version = 1;     ///< of the payload's layout
  std::string_view others;       ///< for the message if the inputs differ: "other keys or options"
  std::string_view former = {};  ///< first bytes of files in the format used before snapshots
};

/// The bytes of a snapshot.
///
/// Layout    "normscope.snapshot/1\n"; name (length, bytes), version (32 bits), fingerprint (32 bytes),
///           payload (length, bytes), as `Packer` puts them; SHA-256 of all bytes before it
[[nodiscard]] std::vector<std::byte> write_snapshot(const SnapshotKind& kind, const Digest& fingerprint,
                                                    std::span<const std::byte> payload);

/// The payload of a snapshot of that kind and fingerprint; messages name it `source`.
///
/// Errors    Format for bytes that are no such snapshot, have another version, or were changed; Argument for
///           a snapshot of other inputs (tests: Snapshot.NoticesEveryChangedByte, Snapshot.ReportsErrors)
[[nodiscard]] std::vector<std::byte> read_snapshot(std::span<const std::byte> bytes, const SnapshotKind& kind,
                                                   const Digest& fingerprint, const std::string& source);

/// Write a snapshot to a file, atomically, and read one.
///
/// Errors    Io
void save_snapshot(const std::filesystem::path& path, const SnapshotKind& kind, const Digest& fingerprint,
                   std::span<const std::byte> payload);
[[nodiscard]] std::vector<std::byte> load_snapshot(const std::filesystem::path& path,
                                                   const SnapshotKind& kind, const Digest& fingerprint);

}  // namespace normscope
