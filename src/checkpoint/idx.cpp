#include <normscope/checkpoint/idx.hpp>

#include <zlib.h>

#include <algorithm>
#include <new>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "shape.hpp"

namespace normscope::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;

/// No deflate stream unpacks to more than this many times its size.
constexpr std::uint64_t largest_ratio = 1032;

[[noreturn]] void fail(ErrorCode code, const std::string& where, const std::string& what) {
  throw Error(code, fmt::format("{}: {}", where, what));
}

/// Reads a file front to back, whether or not it is gzip.
class Source {
 public:
  Source(Bytes bytes, const std::string& where) : bytes_(bytes), where_(where) {
    packed_ = bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
    if (packed_ && inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
    if (packed_) {
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
      stream_.avail_in = static_cast<uInt>(bytes.size());
    }
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() {
    if (packed_) inflateEnd(&stream_);
  }

  /// More bytes than the file can hold.
  [[nodiscard]] bool exceeds(std::uint64_t size) const {
    return size > (packed_ ? largest_ratio * bytes_.size() : bytes_.size());
  }

  void read(std::span<std::byte> out) {
    if (take(out) != out.size()) fail(ErrorCode::Format, where_, "ends within its array");
  }

  void finish() {
    std::byte more{};
    if (take({&more, 1}) != 0) fail(ErrorCode::Format, where_, "has bytes behind its array");
    if (packed_ && (!ended_ || stream_.avail_in != 0)) {
      fail(ErrorCode::Format, where_, "is not one whole gzip stream");
    }
  }

 private:
  std::size_t take(std::span<std::byte> out) {
    if (!packed_) {
      const std::size_t count = std::min(out.size(), bytes_.size() - at_);
      std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), count, out.begin());
      at_ += count;
      return count;
    }
    constexpr std::size_t step = std::size_t{1} << 30;
    std::size_t done = 0;
    while (done < out.size() && !ended_) {
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      stream_.avail_out = static_cast<uInt>(std::min(out.size() - done, step));
      const uInt wanted = stream_.avail_out;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END)
        fail(ErrorCode::Format, where_, "has a broken gzip stream");
      ended_ = status == Z_STREAM_END;
      done += wanted - stream_.avail_out;
    }
    return done;
  }

  Bytes bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
  z_stream stream_{};
  bool packed_ = false;
  bool ended_ = false;
};

std::optional<Dtype> element_type(std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08: return Dtype::U8;
    case 0x09: return Dtype::I8;
    case 0x0b: return Dtype::I16;
    case 0x0c: return Dtype::I32;
    case 0x0d: return Dtype::F32;
    case 0x0e: return Dtype::F64;
    default: return std::nullopt;
  }
}

}  // namespace

Array read_idx(Bytes bytes, const std::string& where) {
  if (bytes.size() > 0xffffffffU) fail(ErrorCode::Unsupported, where, "is over 4 GiB");
  Source source(bytes, where);
  std::byte magic[4];
  source.read(magic);
  const std::optional<Dtype> dtype = element_type(magic[2]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || !dtype || magic[3] == std::byte{0}) {
    fail(ErrorCode::Format, where,
         "does not begin as IDX: two zero bytes, an element type, a number of axes");
  }
  Array array;
  array.dtype = *dtype;
  for (int axis = 0; axis < std::to_integer<int>(magic[3]); ++axis) {
    std::byte length[4];
    source.read(length);
    std::uint64_t extent = 0;
    for (const std::byte byte : length) extent = extent << 8 | std::to_integer<std::uint64_t>(byte);
    array.shape.push_back(extent);
  }
  const std::optional<std::uint64_t> elements = element_count(array.shape);
  const std::size_t size = bits(*dtype) / 8;
  if (!elements || *elements > 0xffffffffffffU || source.exceeds(*elements * size)) {
    fail(ErrorCode::Format, where, "states more elements than it has bytes for");
  }
  std::vector<std::byte> data(*elements * size);
  source.read(data);
  source.finish();
  for (std::size_t at = 0; size > 1 && at < data.size(); at += size) {
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at),
                 data.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
  array.values.resize(*elements);
  decode(*dtype, data, array.values);
  return array;
}

}  // namespace normscope::checkpoint
