#include <span>
#include <string>

#include <normscope/core/error.hpp>

#include "checkpoint/flax.hpp"
#include "fuzz_target.hpp"

using namespace normscope;
using namespace std::string_literals;

namespace {

bool check_flax(std::span<const std::byte> bytes) {
  try {
    const checkpoint::ParsedFile file = checkpoint::parse_flax(bytes, "fuzz");
    std::uint64_t stored = 0;
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const checkpoint::Tensor& tensor = file.tensors[i];
      fuzz_require(i == 0 || file.tensors[i - 1].name < tensor.name);
      stored += tensor.stored_bytes();
      if (tensor.is_decodable()) fuzz_require(read(tensor).size() == tensor.elements());
    }
    fuzz_require(stored <= bytes.size());
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_flax(std::as_bytes(std::span(data, size)));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string array =
      "\x93\x91\x02\xa7"
      "float32\xc4\x08" +
      "\0\0\x80\x3f\0\0\0\x40"s;
  const std::string tensor = "\xc7" + std::string(1, static_cast<char>(array.size())) + "\x01" + array;
  std::vector<std::string> seeds = {
      "\x82\xa1"
      "a\x81\xa5"
      "scale" +
          tensor +
          "\xa1"
          "b" +
          tensor,
      "\x83\xa1"
      "s\x2a\xa1"
      "l\x92\xca\1\2\3\4\xc0\xd9\1n\x81\xa1t\xd1\1\2"s,
  };
  for (const std::string& seed : seeds) fuzz_require(check_flax(std::as_bytes(std::span(seed))));
  return seeds;
}
