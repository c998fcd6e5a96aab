#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>
#include <normscope/files/zip.hpp>

#include "readers.hpp"

/// Replacement of zlib/ for builds without zlib: uncompressed files are read, others rejected.
namespace normscope::files {
namespace {

[[noreturn]] void refuse(const std::string& where, const char* what) {
  throw Error(ErrorCode::Unsupported,
              fmt::format("{}: is {}, which only a build with zlib can read", where, what));
}

/// The CRC-32 of zip, before its last inversion, after these bytes too.
std::uint32_t add_to_crc(std::uint32_t crc, std::span<const std::byte> bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> result{};
    for (std::uint32_t i = 0; i < result.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320U : 0U);
      result[i] = value;
    }
    return result;
  }();
  for (const std::byte byte : bytes) {
    crc = (crc >> 8) ^ table[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  }
  return crc;
}

}  // namespace

struct PackedSource::Inflater {};

PackedSource::PackedSource(std::span<const std::byte> bytes, std::string where)
    : bytes_(bytes), where_(std::move(where)) {
  if (bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b}) {
    refuse(where_, "packed with gzip");
  }
}

PackedSource::~PackedSource() = default;

void PackedSource::require(std::uint64_t size) const {
  if (size <= bytes_.size()) return;
  throw Error(ErrorCode::Format,
              fmt::format("{}: has fewer bytes than the elements that its header states", where_));
}

void PackedSource::read(std::span<std::byte> out) {
  if (take(out) != out.size()) {
    throw Error(ErrorCode::Format, fmt::format("{}: ends before its array is complete", where_));
  }
}

std::size_t PackedSource::take(std::span<std::byte> out) {
  const std::size_t count = std::min(out.size(), bytes_.size() - at_);
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), count, out.begin());
  at_ += count;
  return count;
}

void PackedSource::finish() {
  if (at_ != bytes_.size()) {
    throw Error(ErrorCode::Format, fmt::format("{}: has bytes after its array", where_));
  }
}

struct ZipStream::State {
  std::string where;
  std::vector<std::byte> held;      ///< the member of a zip that is not in memory
  std::span<const std::byte> left;  ///< not yet read
  std::uint32_t expected_crc = 0;
  std::uint32_t crc = ~std::uint32_t{0};  ///< before its last inversion
};

ZipStream::ZipStream(const StoredBytes& bytes, const ZipMember& member, const std::string& where)
    : state_(std::make_unique<State>()) {
  state_->where = fmt::format("{}: zip: member {}", where, quote(member.name));
  if (member.method != zip_stored) refuse(state_->where, "compressed");
  state_->left = stored_member(bytes, member, where).fetch(state_->held);
  state_->expected_crc = member.crc;
}

ZipStream::~ZipStream() = default;

void ZipStream::read(std::span<std::byte> out) {
  if (out.size() > state_->left.size()) throw Error(ErrorCode::Format, state_->where + ": ends too early");
  std::copy_n(state_->left.begin(), out.size(), out.begin());
  state_->left = state_->left.subspan(out.size());
  state_->crc = add_to_crc(state_->crc, out);
}

void ZipStream::finish() {
  if (!state_->left.empty()) {
    throw Error(ErrorCode::Format,
                fmt::format("{}: has {} bytes more than expected", state_->where, state_->left.size()));
  }
  if (~state_->crc == state_->expected_crc) return;
  throw Error(ErrorCode::Format, fmt::format("{}: CRC-32 is {:08x}, expected {:08x}", state_->where,
                                             ~state_->crc, state_->expected_crc));
}

void inflate_zlib(std::span<const std::byte> /*packed*/, std::span<std::byte> /*out*/,
                  const std::string& where) {
  refuse(where, "compressed");
}

void check_zip(std::span<const std::byte> /*bytes*/, const std::string& where) { refuse(where, "a zip"); }

}  // namespace normscope::files
