#include <cstring>
#include <span>

#include <normscope/core/error.hpp>
#include <normscope/files/safetensors.hpp>

#include "fuzz_target.hpp"

using namespace normscope;

namespace {

std::string with_length(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const files::SafetensorsContents contents =
        files::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < contents.tensors.size(); ++i) {
      const files::Tensor& tensor = contents.tensors[i];
      fuzz_require(i == 0 || contents.tensors[i - 1].name < tensor.name);
      fuzz_require(tensor.elements() * bits(tensor.dtype) == tensor.bytes.size() * 8);
      if (is_decodable(tensor.dtype)) fuzz_require(read(tensor).size() == tensor.elements());
      total += tensor.bytes.size();
    }
    std::uint64_t header = 0;
    std::memcpy(&header, data, sizeof header);
    fuzz_require(8 + header + total == size);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      with_length("{}", ""),
      with_length(
          R"({"__metadata__":{"format":"pt","k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}  )",
          "12345678"),
      with_length(
          R"({"b\u00e9":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},)"
          R"("a":{"dtype":"F4","shape":[2],"data_offsets":[2,3]},"e":{"dtype":"I64","shape":[3,0],"data_offsets":[3,3]}})",
          "123"),
  };
}
