#include <span>
#include <vector>

#include <normscope/core/error.hpp>

#include "files/npy.hpp"
#include "fuzz_target.hpp"

using namespace normscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto [header, elements] = files::parse_npy(std::as_bytes(std::span(data, size)), "fuzz");
    std::uint64_t expected = bits(header.dtype) / 8;
    for (const std::uint64_t extent : header.shape) expected *= extent;
    std::vector<std::byte> buffer;
    fuzz_require(files::npy_elements(header, elements, buffer).size() == expected);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  const std::string dict = "{'descr': '>f2', 'fortran_order': True, 'shape': (2, 3), }\n";
  return {
      files::npy_preamble(Dtype::F64, std::vector<std::uint64_t>{2}) + std::string(16, '?'),
      files::npy_preamble(Dtype::BOOL, {}) + "\1",
      "\x93NUMPY\2\0"s + static_cast<char>(dict.size()) + "\0\0\0"s + dict + "123456789012",
  };
}
