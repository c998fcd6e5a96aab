#include <normscope/files/zip.hpp>

#include <zlib.h>

#include <limits>
#include <new>

#include <fmt/core.h>

#include <normscope/files/fail.hpp>

namespace normscope::files {

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

}  // namespace normscope::files
