#include <zlib.h>

#include <span>

#include <normscope/core/error.hpp>
#include <normscope/files/array.hpp>

#include "fuzz_target.hpp"

using namespace normscope;

namespace {

std::string gzipped(const std::string& text) {
  z_stream stream{};
  fuzz_require(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(text.size() + 128, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  fuzz_require(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const files::Array array = files::read_idx(std::as_bytes(std::span(data, size)), "fuzz");
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : array.shape) elements *= extent;
    fuzz_require(array.values.size() == elements);
    // deflate packs at most 1032 to one.
    fuzz_require(elements * bits(array.dtype) / 8 <= 1032 * size);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  const std::string images = "\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\2"s + "1234";
  const std::string labels = "\0\0\x08\1\0\0\0\3"s + "abc";
  const std::string doubles = "\0\0\x0e\1\0\0\0\1"s + "12345678";
  const std::string none = "\0\0\x0b\2\0\0\0\0\0\0\0\3"s;
  return {images, labels, doubles, none, gzipped(images), gzipped(labels), gzipped(none)};
}
