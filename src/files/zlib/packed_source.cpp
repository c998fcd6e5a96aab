#include "packed_source.hpp"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/zip.hpp>

namespace normscope::files {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::Format, fmt::format("{}: {}", where, what));
}

}  // namespace

struct PackedSource::Inflater {
  z_stream stream{};
  bool ended = false;

  Inflater() {
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

PackedSource::PackedSource(std::span<const std::byte> bytes, std::string where)
    : bytes_(bytes), where_(std::move(where)) {
  if (bytes.size() < 2 || bytes[0] != std::byte{0x1f} || bytes[1] != std::byte{0x8b}) return;
  inflater_ = std::make_unique<Inflater>();
  inflater_->stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  inflater_->stream.avail_in = static_cast<uInt>(bytes.size());
}

PackedSource::~PackedSource() = default;

void PackedSource::require(std::uint64_t size) const {
  if (size > (inflater_ ? largest_deflate_ratio * bytes_.size() : bytes_.size())) {
    fail(where_, "has fewer bytes than the elements that its header states");
  }
  if (inflater_ && size > most_unpacked(bytes_.size())) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("{}: has more than the {} bytes that are unpacked from {}; unpack it first",
                            where_, most_unpacked(bytes_.size()), bytes_.size()));
  }
}

void PackedSource::read(std::span<std::byte> out) {
  if (take(out) != out.size()) fail(where_, "ends before its array is complete");
}

std::size_t PackedSource::take(std::span<std::byte> out) {
  if (!inflater_) {
    const std::size_t count = std::min(out.size(), bytes_.size() - at_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), count, out.begin());
    at_ += count;
    return count;
  }
  z_stream& stream = inflater_->stream;
  constexpr std::size_t step = std::size_t{1} << 30;
  std::size_t done = 0;
  while (done < out.size() && !inflater_->ended) {
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = static_cast<uInt>(std::min(out.size() - done, step));
    const uInt wanted = stream.avail_out;
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) fail(where_, "has a corrupt gzip stream");
    inflater_->ended = status == Z_STREAM_END;
    done += wanted - stream.avail_out;
  }
  at_ += done;
  require(at_);  // for a reader that learns the size of its array only at the end
  return done;
}

void PackedSource::finish() {
  std::byte more{};
  if (take({&more, 1}) != 0) fail(where_, "has bytes after its array");
  if (inflater_ && (!inflater_->ended || inflater_->stream.avail_in != 0))
    fail(where_, "is not one complete gzip stream");
}

}  // namespace normscope::files
