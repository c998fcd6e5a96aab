#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include <normscope/core/error.hpp>

#include "checkpoint/hdf5.hpp"
#include "fuzz_target.hpp"

using namespace normscope;

namespace {

bool check_hdf5(std::span<const std::byte> bytes) {
  try {
    const checkpoint::ParsedFile file = checkpoint::parse_hdf5(bytes, "fuzz");
    std::uint64_t stored = 0;
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const checkpoint::Tensor& tensor = file.tensors[i];
      fuzz_require(i == 0 || file.tensors[i - 1].name < tensor.name);
      stored += tensor.stored_bytes();
    }
    // Deflate's largest ratio, on elements that do not overlap; a chunk may be larger than what it holds.
    fuzz_require(stored <= bytes.size() * 1033);
    for (const checkpoint::Tensor& tensor : file.tensors)
      fuzz_require(read(tensor).size() == tensor.elements());
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string fixture(const std::string& name) {
  std::ifstream file(std::string(NORMSCOPE_SOURCE_DIR) + "/tests/checkpoint/fixtures/" + name,
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> bytes(data, data + size);
  // The superblock states the size of the file; without this most changes would be refused there.
  const std::size_t end_at = size > 8 && data[8] >= 2 ? 28 : 40;
  const std::uint64_t end = size;
  if (size >= end_at + sizeof end) std::memcpy(bytes.data() + end_at, &end, sizeof end);
  check_hdf5(std::as_bytes(std::span(bytes)));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds = {fixture("hdf5_plain.h5"), fixture("hdf5_latest.h5")};
  for (const std::string& seed : seeds) fuzz_require(check_hdf5(std::as_bytes(std::span(seed))));
  return seeds;
}
