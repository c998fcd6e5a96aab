#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/core/snapshot.hpp>

namespace normscope::test {

/// A snapshot in its parts, to be reassembled with other contents and a matching checksum, as
/// an attacker can do.
class OpenSnapshot {
 public:
  explicit OpenSnapshot(std::span<const std::byte> bytes) {
    constexpr std::size_t magic = 21;
    Unpacker fields(bytes.subspan(magic, bytes.size() - magic - sizeof(Digest)));
    std::vector<char> name;
    fields.get(name);
    fields.get(version_);
    fields.get(inputs_);
    fields.get(payload_);
    fields.finish();
    name_.assign(name.begin(), name.end());
  }

  [[nodiscard]] const std::vector<std::byte>& payload() const { return payload_; }
  [[nodiscard]] std::vector<std::byte> with(const std::vector<std::byte>& payload) const {
    return write_snapshot({.name = name_, .version = version_, .others = {}}, inputs_, payload);
  }
  /// With one bit of the payload flipped.
  [[nodiscard]] std::vector<std::byte> forged(Random& random) const {
    std::vector<std::byte> payload = payload_;
    payload[random.below(payload.size())] ^= static_cast<std::byte>(1U << random.below(8));
    return with(payload);
  }

 private:
  std::string name_{};
  std::uint32_t version_ = 0;
  Digest inputs_{};
  std::vector<std::byte> payload_{};
};

}  // namespace normscope::test
