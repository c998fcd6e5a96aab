#include <cstring>
#include <span>

#include <normscope/core/error.hpp>

#include "files/readers.hpp"
#include "fuzz_target.hpp"

using namespace normscope;

namespace {

template <typename Number>
std::string le(Number value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string counted(const std::string& text) { return le<std::uint64_t>(text.size()) + text; }

std::string entry(const std::string& key, std::uint32_t type, const std::string& value) {
  return counted(key) + le(type) + value;
}

std::string vector(const std::string& name, std::uint64_t size, std::uint32_t type, std::uint64_t offset) {
  return counted(name) + le(1u) + le(size) + le(type) + le(offset);
}

std::string gguf_file(std::uint64_t entries, std::uint64_t tensors, const std::string& header,
                      const std::string& data) {
  std::string file = "GGUF" + le(3u) + le(tensors) + le(entries) + header;
  file.resize((file.size() + 31) / 32 * 32, '\0');
  return file + data;
}

bool check_gguf(std::span<const std::byte> bytes) {
  try {
    const files::ParsedFile file = files::parse_gguf(bytes, "fuzz");
    std::uint64_t stored = 0;
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const files::Tensor& tensor = file.tensors[i];
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
  check_gguf(std::as_bytes(std::span(data, size)));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string entries =
      entry("a", 8, counted("text")) + entry("b", 9, le(4u) + le(std::uint64_t{2}) + le(1u) + le(2u)) +
      entry("c", 9, le(8u) + le(std::uint64_t{1}) + counted("x")) + entry("general.alignment", 4, le(32u));
  std::vector<std::string> seeds = {
      gguf_file(4, 2, entries + vector("w", 2, 0, 0) + vector("q", 32, 8, 32), std::string(32 + 34, '\1')),
      gguf_file(0, 2, vector("k", 256, 12, 0) + vector("x", 256, 23, 160), std::string(160 + 136, '\2')),
      gguf_file(0, 2, vector("k", 256, 14, 0) + vector("u", 256, 16, 224), std::string(224 + 66, '\3')),
  };
  for (const std::string& seed : seeds) fuzz_require(check_gguf(std::as_bytes(std::span(seed))));
  return seeds;
}
