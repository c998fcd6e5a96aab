#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>

#include <normscope/core/error.hpp>

#include "checkpoint/crc32c.hpp"
#include "checkpoint/tensorflow.hpp"
#include "fuzz_target.hpp"

using namespace normscope;

namespace {

std::string number(std::uint32_t value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

/// A block with its trailer.
std::string block(const std::string& entries) {
  const std::string bytes = entries + number(0) + number(1) + '\0';
  return bytes + number(checkpoint::masked_crc32c(checkpoint::crc32c(std::as_bytes(std::span(bytes)))));
}

std::string handle(std::size_t begin, const std::string& block) {
  return varint(begin) + varint(block.size() - 5);
}

/// A table whose only block of data has these bytes.
std::string table(const std::string& entries) {
  const std::string data = block(entries);
  const std::string where = handle(0, data);
  const std::string list = block(std::string("\0\1", 2) + varint(where.size()) + "z" + where);
  std::string footer = handle(0, data) + handle(data.size(), list);
  footer.resize(40);
  const std::uint64_t magic = 0xdb4775248b80fb57u;
  return data + list + footer + number(static_cast<std::uint32_t>(magic)) +
         number(static_cast<std::uint32_t>(magic >> 32));
}

std::string entry(const std::string& key, const std::string& value) {
  return std::string(1, '\0') + varint(key.size()) + varint(value.size()) + key + value;
}

bool check_tensorflow(const std::string& index) {
  const std::string elements(64, 'x');
  const checkpoint::OpenExternal open = [&elements](std::string_view, const std::string& name) {
    fuzz_require(name.rfind("m.data-", 0) == 0 && name.find('/') == std::string::npos);
    return bytes::StoredBytes(std::as_bytes(std::span(elements)));
  };
  try {
    const checkpoint::ParsedFile file =
        checkpoint::parse_tensorflow(std::as_bytes(std::span(index)), "m", "fuzz", open);
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const checkpoint::Tensor& tensor = file.tensors[i];
      fuzz_require(i == 0 || file.tensors[i - 1].name < tensor.name);
      fuzz_require(tensor.elements() * bits(tensor.dtype) == tensor.bytes.size() * 8);
      try {
        if (is_decodable(tensor.dtype)) fuzz_require(read(tensor).size() == tensor.elements());
      } catch (const Error&) {  // a checksum
      }
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

/// The input is the entries of a table, whose checksums are right, or else a whole file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  check_tensorflow(bytes);
  check_tensorflow(table(bytes));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  const std::string header = entry("", "\x08\1");
  const std::string elements(8, 'x');
  const std::uint32_t crc = checkpoint::crc32c(std::as_bytes(std::span(elements)));
  const std::string tensor = "\x08\1\x12\4\x12\2\x08\2\x28\x08\x35"s + number(checkpoint::masked_crc32c(crc));
  std::vector<std::string> seeds = {
      header + entry("a", tensor) + "\1\1"s + varint(tensor.size()) + "b" + tensor,
      header + entry("_CHECKPOINTABLE_OBJECT_GRAPH", "\x08\7\x28\5") + entry("b", "\x08\1\x28\4"),
  };
  fuzz_require(check_tensorflow(table(seeds[0])));
  return seeds;
}
