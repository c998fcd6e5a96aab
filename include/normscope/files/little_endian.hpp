#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace normscope::files {

/// Splits off and returns the first `size` bytes of `rest`.
///
/// Requires  size <= rest.size()
[[nodiscard]] inline std::span<const std::byte> take_front(std::span<const std::byte>& rest,
                                                           std::size_t size) {
  const std::span<const std::byte> taken = rest.first(size);
  rest = rest.subspan(size);
  return taken;
}

/// A little-endian number in this machine's representation.
///
/// Requires  bytes.size() == sizeof(Number)
template <typename Number>
[[nodiscard]] Number load(std::span<const std::byte> bytes) {
  Number value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace normscope::files
