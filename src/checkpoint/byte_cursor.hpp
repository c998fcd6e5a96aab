#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include <normscope/bytes/fail.hpp>
#include <normscope/bytes/little_endian.hpp>
#include <normscope/core/error.hpp>

namespace normscope::checkpoint {

/// Takes little-endian numbers and bytes one after another from a part of a file.
///
/// Errors    Format: `what` is truncated, in messages that begin with `where`
class ByteCursor {
 public:
  ByteCursor(std::span<const std::byte> bytes, std::string_view what, const std::string& where)
      : rest_(bytes), what_(what), where_(where) {}

  [[nodiscard]] std::size_t left() const { return rest_.size(); }
  [[nodiscard]] std::span<const std::byte> rest() const { return rest_; }

  std::span<const std::byte> take(std::uint64_t size) {
    if (size > rest_.size()) {
      bytes::fail(
          ErrorCode::Format, where_,
          fmt::format("{} is truncated: {} bytes are needed, {} are left", what_, size, rest_.size()));
    }
    return bytes::take_front(rest_, static_cast<std::size_t>(size));
  }
  void skip(std::uint64_t size) { (void)take(size); }
  template <typename Number>
  Number number() {
    return bytes::load<Number>(take(sizeof(Number)));
  }
  /// An unsigned number of 1 to 8 bytes.
  std::uint64_t number(unsigned width) {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (const std::byte byte : take(width)) {
      value |= static_cast<std::uint64_t>(byte) << shift;
      shift += 8;
    }
    return value;
  }

 private:
  std::span<const std::byte> rest_;
  std::string_view what_;
  const std::string& where_;
};

}  // namespace normscope::checkpoint
