#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/sha256.hpp>

/// The file format for saved states of long runs. A snapshot states the kind of run and the version of its
/// layout, contains a hash of the run's inputs, and ends with a hash of all its bytes, so that any changed
/// bit is detected. It is not trusted: readers check every value and every proof as for any untrusted file.
namespace normscope {

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

/// The same for a file, which is written atomically.
///
/// Errors    Io
void save_snapshot(const std::filesystem::path& path, const SnapshotKind& kind, const Digest& fingerprint,
                   std::span<const std::byte> payload);
[[nodiscard]] std::vector<std::byte> load_snapshot(const std::filesystem::path& path,
                                                   const SnapshotKind& kind, const Digest& fingerprint);

}  // namespace normscope
