#include <normscope/core/error.hpp>
#include <normscope/core/snapshot.hpp>

#include "fuzz_target.hpp"

using namespace normscope;

namespace {

const SnapshotKind kind{"fuzz", 3, "former", "inputs"};
const Digest inputs{std::byte{1}, std::byte{2}};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::vector<std::byte> payload = read_snapshot(bytes_of(text), kind, inputs, "state");
    // What is accepted is what would be written.
    const std::vector<std::byte> again = write_snapshot(kind, inputs, payload);
    fuzz_require(again.size() == size && std::equal(again.begin(), again.end(), bytes_of(text).begin()));
  } catch (const Error& error) {
    fuzz_require(error.code() == ErrorCode::Format || error.code() == ErrorCode::Argument);
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const std::string_view payload : {"", "a payload", "0123456789abcdefghijklmnopqrstuvwxyz"}) {
    const std::vector<std::byte> bytes = write_snapshot(kind, inputs, bytes_of(payload));
    seeds.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return seeds;
}
