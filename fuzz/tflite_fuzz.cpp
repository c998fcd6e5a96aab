#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include <normscope/core/error.hpp>

#include "checkpoint/tflite.hpp"
#include "fuzz_target.hpp"

using namespace normscope;

namespace {

bool check_tflite(std::span<const std::byte> bytes) {
  try {
    const checkpoint::ParsedFile file = checkpoint::parse_tflite(bytes, "fuzz");
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const checkpoint::Tensor& tensor = file.tensors[i];
      fuzz_require(i == 0 || file.tensors[i - 1].name < tensor.name);
      fuzz_require(tensor.stored_bytes() <= bytes.size());
      if (tensor.is_decodable()) fuzz_require(read(tensor).size() == tensor.elements());
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_tflite(std::as_bytes(std::span(data, size)));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const char* name : {"lite_plain.tflite", "lite_quantized.tflite"}) {
    std::ifstream file(std::string(NORMSCOPE_SOURCE_DIR) + "/tests/checkpoint/fixtures/" + name,
                       std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    fuzz_require(check_tflite(std::as_bytes(std::span(seeds.back()))));
  }
  return seeds;
}
