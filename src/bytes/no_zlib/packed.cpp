#include <algorithm>

#include <fmt/core.h>

#include <normscope/bytes/deflate.hpp>
#include <normscope/bytes/zip.hpp>
#include <normscope/core/error.hpp>

#include "packed_source.hpp"

/// Replacement of zlib/ for builds without zlib: uncompressed files are read, others rejected.
namespace normscope::bytes {
namespace {

[[noreturn]] void refuse(const std::string& where, const char* what) {
  throw Error(ErrorCode::Unsupported,
              fmt::format("{}: is {}, which this build cannot read; use the normscope command", where, what));
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

struct ZipStream::State {};

ZipStream::ZipStream(std::span<const std::byte> /*bytes*/, const ZipMember& /*member*/,
                     const std::string& where) {
  refuse(where, "a zip");
}

ZipStream::~ZipStream() = default;
void ZipStream::read(std::span<std::byte> /*out*/) {}
void ZipStream::finish() {}

void inflate_zlib(std::span<const std::byte> /*packed*/, std::span<std::byte> /*out*/,
                  const std::string& where) {
  refuse(where, "compressed");
}

void check_zip(std::span<const std::byte> /*bytes*/, const std::string& where) { refuse(where, "a zip"); }

}  // namespace normscope::bytes
