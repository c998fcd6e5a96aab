#include <normscope/core/snapshot.hpp>

#include <algorithm>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

namespace normscope {
namespace {

constexpr std::string_view magic = "normscope.snapshot/1\n";
/// Number of bytes searched for the signature of an earlier format.
constexpr std::size_t beginning = 4096;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

[[noreturn]] void refuse(const std::string& source, const std::string& what) {
  throw Error(ErrorCode::Format, fmt::format("{}: {}", source, what));
}

}  // namespace

std::vector<std::byte> write_snapshot(const SnapshotKind& kind, const Digest& fingerprint,
                                      std::span<const std::byte> payload) {
  Packer fields;
  fields.put(bytes_of(kind.name));
  fields.put(kind.version);
  fields.put(fingerprint);
  fields.put(std::vector<std::byte>(payload.begin(), payload.end()));
  std::vector<std::byte> bytes = bytes_of(magic);
  bytes.insert(bytes.end(), fields.bytes().begin(), fields.bytes().end());
  const Digest checksum = sha256(bytes);
  bytes.insert(bytes.end(), checksum.begin(), checksum.end());
  return bytes;
}

std::vector<std::byte> read_snapshot(std::span<const std::byte> bytes, const SnapshotKind& kind,
                                     const Digest& fingerprint, const std::string& source) {
  const std::string_view text = text_of(bytes);
  if (text.substr(0, magic.size()) != magic) {
    const bool former =
        !kind.former.empty() && text.substr(0, beginning).find(kind.former) != std::string_view::npos;
    refuse(source,
           former ? fmt::format("is a state that an earlier version of {} saved; delete it to start again",
                                kind.name)
                  : fmt::format("is not a state that {} saved", kind.name));
  }
  constexpr std::size_t checksum_size = std::tuple_size_v<Digest>;
  const std::string damaged =
      fmt::format("is damaged: not the bytes that {} saved; delete it to start again", kind.name);
  if (bytes.size() < magic.size() + checksum_size) refuse(source, damaged);
  const std::span<const std::byte> hashed = bytes.first(bytes.size() - checksum_size);
  const Digest checksum = sha256(hashed);
  if (!std::equal(checksum.begin(), checksum.end(), bytes.last(checksum_size).begin())) {
    refuse(source, damaged);
  }
  Unpacker fields(hashed.subspan(magic.size()), fmt::format("{}: {}", source, damaged));
  std::vector<std::byte> name;
  std::uint32_t version = 0;
  Digest inputs{};
  std::vector<std::byte> payload;
  fields.get(name);
  fields.get(version);
  fields.get(inputs);
  fields.get(payload);
  fields.finish();
  if (text_of(name) != kind.name) refuse(source, fmt::format("is not a state that {} saved", kind.name));
  if (version != kind.version) {
    refuse(source, fmt::format("is a state that {} saved in layout {}, expected {}; delete it to start again",
                               kind.name, version, kind.version));
  }
  if (inputs != fingerprint) {
    throw Error(ErrorCode::Argument,
                fmt::format("{}: is a state that {} saved for {}, expected the same ones", source, kind.name,
                            kind.others));
  }
  return payload;
}

void save_snapshot(const std::filesystem::path& path, const SnapshotKind& kind, const Digest& fingerprint,
                   std::span<const std::byte> payload) {
  AtomicFile file(path);
  file.write(write_snapshot(kind, fingerprint, payload));
  file.commit();
}

std::vector<std::byte> load_snapshot(const std::filesystem::path& path, const SnapshotKind& kind,
                                     const Digest& fingerprint) {
  const MappedFile file(path);
  return read_snapshot(file.bytes(), kind, fingerprint, path.string());
}

}  // namespace normscope
