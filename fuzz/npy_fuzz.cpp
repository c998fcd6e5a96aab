#include <span>

#include <normscope/core/error.hpp>

#include "checkpoint/npy.hpp"
#include "fuzz_target.hpp"

using namespace normscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const checkpoint::Array array = checkpoint::read_npy(std::as_bytes(std::span(data, size)), "fuzz");
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : array.shape) elements *= extent;
    fuzz_require(array.values.size() == elements);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  const std::string dict = "{'descr': '>f2', 'fortran_order': True, 'shape': (2, 3), }\n";
  return {
      checkpoint::npy_preamble(Dtype::F64, std::vector<std::uint64_t>{2}) + std::string(16, '?'),
      checkpoint::npy_preamble(Dtype::BOOL, {}) + "\1",
      "\x93NUMPY\2\0"s + static_cast<char>(dict.size()) + "\0\0\0"s + dict + "123456789012",
  };
}
