#include "protobuf.hpp"

#include <cstring>

#include <fmt/core.h>

#include <normscope/bytes/little_endian.hpp>

namespace normscope::checkpoint {

void WireReader::fail(const std::string& fact) const {
  throw Error(ErrorCode::Format, fmt::format("{}: {} {}", where_, what_, fact));
}

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < rest_.size() && i < 10; ++i) {
    const auto byte = std::to_integer<std::uint64_t>(rest_[i]);
    if (i == 9 && byte > 1) fail("has a varint beyond 64 bits");
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      rest_ = rest_.subspan(i + 1);
      return value;
    }
  }
  fail(rest_.size() < 10 ? "ends within a varint" : "has a varint beyond 64 bits");
}

std::span<const std::byte> WireReader::take(std::uint64_t size, std::uint64_t field) {
  if (size > rest_.size()) {
    fail(fmt::format("field {} has {} bytes, {} are left", field, size, rest_.size()));
  }
  const std::span<const std::byte> taken = rest_.first(size);
  rest_ = rest_.subspan(size);
  return taken;
}

std::span<const std::byte> WireReader::raw(std::uint64_t size) {
  if (size > rest_.size()) fail(fmt::format("needs {} bytes, {} are left", size, rest_.size()));
  return bytes::take_front(rest_, static_cast<std::size_t>(size));
}

std::optional<WireField> WireReader::next() {
  if (rest_.empty()) return std::nullopt;
  const std::uint64_t key = varint();
  WireField field;
  field.number = key >> 3;
  field.type = static_cast<WireType>(key & 7);
  if (field.number == 0) fail("has a field 0");
  switch (field.type) {
    case WireType::varint: field.value = varint(); break;
    case WireType::fixed64: field.bytes = take(8, field.number); break;
    case WireType::bytes: field.bytes = take(varint(), field.number); break;
    case WireType::fixed32: field.bytes = take(4, field.number); break;
    default: fail(fmt::format("field {} has wire type {}, expected 0, 1, 2 or 5", field.number, key & 7));
  }
  return field;
}

void WireReader::require(const WireField& field, WireType type) const {
  if (field.type != type) {
    fail(fmt::format("field {} has wire type {}, expected {}", field.number, static_cast<int>(field.type),
                     static_cast<int>(type)));
  }
}

std::uint64_t WireReader::integer(const WireField& field) const {
  require(field, WireType::varint);
  return field.value;
}

float WireReader::real(const WireField& field) const {
  require(field, WireType::fixed32);
  float value = 0;
  std::memcpy(&value, field.bytes.data(), sizeof value);
  return value;
}

std::span<const std::byte> WireReader::bytes(const WireField& field) const {
  require(field, WireType::bytes);
  return field.bytes;
}

std::string_view WireReader::text(const WireField& field) const {
  const std::span<const std::byte> held = bytes(field);
  return {reinterpret_cast<const char*>(held.data()), held.size()};
}

}  // namespace normscope::checkpoint
