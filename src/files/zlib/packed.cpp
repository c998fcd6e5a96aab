#include <normscope/files/zip.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include <fmt/core.h>
#include <zlib.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>

#include "readers.hpp"

namespace normscope::files {
namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::Format, fmt::format("{}: {}", where, what));
}

}  // namespace

void inflate_zlib(std::span<const std::byte> packed, std::span<std::byte> out, const std::string& where) {
  constexpr std::size_t most = std::numeric_limits<uInt>::max();
  if (packed.size() > most || out.size() > most) {
    fail(ErrorCode::Unsupported, where,
         fmt::format("{} compressed bytes are said to decompress to {}, expected at most {}", packed.size(),
                     out.size(), most));
  }
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = ::inflate(&stream, Z_FINISH);
  const bool is_whole = result == Z_STREAM_END && stream.avail_out == 0 && stream.avail_in == 0;
  inflateEnd(&stream);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  if (!is_whole) {
    fail(ErrorCode::Format, where,
         fmt::format("{} compressed bytes do not decompress to {}", packed.size(), out.size()));
  }
}

struct ZipStream::State {
  std::string where;
  std::uint16_t method = zip_stored;
  std::vector<std::byte> held;  ///< the member of a zip that is not in memory
  Bytes packed;                 ///< not yet read
  std::uint64_t left = 0;
  std::uint32_t expected_crc = 0;
  uLong crc = 0;
  z_stream inflater{};

  ~State() {
    if (method == zip_deflated) inflateEnd(&inflater);
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::Format, where + ": " + what);
  }
  void copy(std::span<std::byte> out);
  void inflate_into(std::span<std::byte> out);
};

ZipStream::ZipStream(const StoredBytes& bytes, const ZipMember& member, const std::string& where)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.where = fmt::format("{}: zip: member {}", where, quote(member.name));
  if ((member.flags & 1) != 0) throw Error(ErrorCode::Unsupported, state.where + ": is encrypted");
  if (member.method != zip_stored && member.method != zip_deflated) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("{}: compression method is {}, expected stored (0) or deflated (8)", state.where,
                            member.method));
  }
  const StoredBytes packed = packed_bytes(bytes, member, where);
  state.left = member.size;
  state.expected_crc = member.crc;
  state.crc = crc32(0, nullptr, 0);
  if (member.method == zip_stored && member.packed_size != member.size) {
    state.fail(fmt::format("is stored in {} bytes, its size is {}", member.packed_size, member.size));
  }
  if (member.size / largest_deflate_ratio > member.packed_size) {
    state.fail(fmt::format("states {} bytes uncompressed from {}, more than deflate can compress",
                           member.size, member.packed_size));
  }
  state.packed = packed.fetch(state.held);
  if (member.method == zip_deflated) {
    if (inflateInit2(&state.inflater, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    state.method = zip_deflated;
  }
}

ZipStream::~ZipStream() = default;

void ZipStream::State::copy(std::span<std::byte> out) {
  std::memcpy(out.data(), packed.data(), out.size());
  packed = packed.subspan(out.size());
}

void ZipStream::State::inflate_into(std::span<std::byte> out) {
  constexpr std::size_t largest_step = std::numeric_limits<uInt>::max();
  while (!out.empty()) {
    inflater.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    inflater.avail_in = static_cast<uInt>(std::min(packed.size(), largest_step));
    inflater.next_out = reinterpret_cast<Bytef*>(out.data());
    inflater.avail_out = static_cast<uInt>(std::min(out.size(), largest_step));
    const std::size_t in = inflater.avail_in;
    const std::size_t room = inflater.avail_out;
    const int result = ::inflate(&inflater, Z_NO_FLUSH);
    packed = packed.subspan(in - inflater.avail_in);
    out = out.subspan(room - inflater.avail_out);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    const bool ends = result == Z_STREAM_END && !out.empty();
    if (ends || (result != Z_OK && result != Z_STREAM_END)) fail("compressed data is corrupt or truncated");
  }
}

void ZipStream::read(std::span<std::byte> out) {
  State& state = *state_;
  if (out.size() > state.left) state.fail("ends too early");
  if (out.empty()) return;  // zlib treats a null pointer as a request to reset the checksum
  state.method == zip_deflated ? state.inflate_into(out) : state.copy(out);
  state.left -= out.size();
  state.crc = crc32_z(state.crc, reinterpret_cast<const Bytef*>(out.data()), out.size());
}

void ZipStream::finish() {
  const State& state = *state_;
  if (state.left != 0) state.fail(fmt::format("has {} bytes more than expected", state.left));
  if (state.crc != state.expected_crc) {
    state.fail(fmt::format("CRC-32 is {:08x}, expected {:08x}", state.crc, state.expected_crc));
  }
}

void check_zip(Bytes bytes, const std::string& where) {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  for (const ZipMember& member : read_zip_directory(bytes, where)) {
    if (member.crc == 0) continue;
    ZipStream stream(bytes, member, where);
    for (std::uint64_t left = member.size; left > 0;) {
      const std::size_t count = std::min<std::uint64_t>(left, buffer.size());
      stream.read(std::span(buffer).first(count));
      left -= count;
    }
    stream.finish();
  }
}

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
