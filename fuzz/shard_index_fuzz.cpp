#include <normscope/core/error.hpp>

#include "files/shard.hpp"
#include "fuzz_target.hpp"

using namespace normscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto map = files::parse_shard_index({reinterpret_cast<const char*>(data), size}, "fuzz");
    fuzz_require(!map.empty());
    for (const auto& [tensor, shard] : map) {
      fuzz_require(!shard.empty() && shard != ".." && shard.find('/') == std::string::npos);
    }
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"weight_map":{"a":"1.safetensors"}})",
      R"({"metadata":{"total_size":16,"more":[1,-2.5e3,null,true,{"x":[]}]},)"
      "\n \"weight_map\" : {\"a\\u00e9\" : \"model-00001-of-00002.safetensors\", \"b\":\"2.safetensors\"}}\n",
  };
}
