#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/sha256.hpp>

/// What a long run saves to go on from: one format for all of them. A snapshot names what kind of run it is
/// of and in which version of that run's layout, holds a hash of what the run depends on, and ends with a
/// hash of all its bytes, so that whatever changed a single bit is noticed. It proves nothing about what it
/// holds: whoever reads one checks every value, and every proof, as if it came from a stranger.
namespace normscope {

struct SnapshotKind {
  std::string_view name;         ///< of what saves it, as messages say it: "reach"
  std::uint32_t version = 1;     ///< of the payload's layout
  std::string_view others;       ///< what a snapshot that does not fit is for: "other keys or options"
  std::string_view former = {};  ///< what files that were written before there were snapshots begin with
};

/// The bytes of a snapshot.
/// Layout    "normscope.snapshot/1\n"; name (length, bytes), version (32 bits), fingerprint (32 bytes),
///           payload (length, bytes), as `Packer` puts them; SHA-256 of all bytes before it
[[nodiscard]] std::vector<std::byte> write_snapshot(const SnapshotKind& kind, const Digest& fingerprint,
                                                    std::span<const std::byte> payload);

/// What was put into a snapshot of that kind and fingerprint; `source` names it in messages.
/// Errors    Format for bytes that are no such snapshot, of another version, or changed since they were
///           written; Argument for a snapshot of other inputs
///           (tests: Snapshot.NoticesEveryChangedByte, Snapshot.SaysWhatIsWrong)
[[nodiscard]] std::vector<std::byte> read_snapshot(std::span<const std::byte> bytes, const SnapshotKind& kind,
                                                   const Digest& fingerprint, const std::string& source);

/// The same with a file, which appears whole or not at all. Errors    Io
void save_snapshot(const std::filesystem::path& path, const SnapshotKind& kind, const Digest& fingerprint,
                   std::span<const std::byte> payload);
[[nodiscard]] std::vector<std::byte> load_snapshot(const std::filesystem::path& path,
                                                   const SnapshotKind& kind, const Digest& fingerprint);

}  // namespace normscope
