#include "protobuf.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "parsed_file.hpp"

namespace normscope::files {
namespace {

/// Longest beginning of a field: its key, and a varint or the number of its bytes.
constexpr std::uint64_t longest_beginning = 20;

[[noreturn]] void fail_message(const std::string& where, std::string_view what, const std::string& fact) {
  throw Error(ErrorCode::Format, fmt::format("{}: {} {}", where, what, fact));
}

void require_left(std::uint64_t left, const WireKey& key, std::string_view what, const std::string& where) {
  if (key.size <= left) return;
  fail_message(where, what, fmt::format("field {} has {} bytes, {} are left", key.number, key.size, left));
}

/// Throws unless a field, of either reader, has that type.
template <typename Field>
void require_type(const Field& field, WireType type, std::string_view what, const std::string& where) {
  if (field.type == type) return;
  fail_message(where, what,
               fmt::format("field {} has wire type {}, expected {}", field.number,
                           static_cast<int>(field.type), static_cast<int>(type)));
}

}  // namespace

void WireReader::fail(const std::string& fact) const { fail_message(where_, what_, fact); }

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < rest_.size(); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(rest_[i]);
    // The tenth byte is the last one, and holds one bit.
    if (i == 9 && byte > 1) fail("has a varint beyond 64 bits");
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      rest_ = rest_.subspan(i + 1);
      return value;
    }
  }
  fail("ends within a varint");
}

WireKey WireReader::key() {
  const std::uint64_t stored = varint();
  WireKey key;
  key.number = stored >> 3;
  key.type = static_cast<WireType>(stored & 7);
  if (key.number == 0) fail("has a field 0");
  switch (key.type) {
    case WireType::varint: key.value = varint(); break;
    case WireType::fixed64: key.size = 8; break;
    case WireType::bytes: key.size = varint(); break;
    case WireType::fixed32: key.size = 4; break;
    default: fail(fmt::format("field {} has wire type {}, expected 0, 1, 2 or 5", key.number, stored & 7));
  }
  return key;
}

std::optional<WireField> WireReader::next() {
  if (rest_.empty()) return std::nullopt;
  const WireKey key = this->key();
  require_left(rest_.size(), key, what_, where_);
  return WireField{key.number, key.type, key.value, take_front(rest_, static_cast<std::size_t>(key.size))};
}

std::uint64_t WireReader::integer(const WireField& field) const {
  require_type(field, WireType::varint, what_, where_);
  return field.value;
}

float WireReader::real(const WireField& field) const {
  require_type(field, WireType::fixed32, what_, where_);
  float value = 0;
  std::memcpy(&value, field.bytes.data(), sizeof value);
  return value;
}

std::span<const std::byte> WireReader::bytes(const WireField& field) const {
  require_type(field, WireType::bytes, what_, where_);
  return field.bytes;
}

std::string_view WireReader::text(const WireField& field) const {
  const std::span<const std::byte> held = bytes(field);
  return {reinterpret_cast<const char*>(held.data()), held.size()};
}

std::optional<StoredField> StoredWireReader::next() {
  if (rest_.size() == 0) return std::nullopt;
  const std::span<const std::byte> beginning =
      rest_.part(0, std::min(rest_.size(), longest_beginning)).fetch(beginning_);
  WireReader reader(beginning, what_, where_);
  const WireKey key = reader.key();
  const std::uint64_t begin = beginning.size() - reader.left();
  const std::uint64_t left = rest_.size() - begin;
  require_left(left, key, what_, where_);
  const StoredField field{key.number, key.type, key.value, rest_.part(begin, key.size)};
  rest_ = rest_.part(begin + key.size, left - key.size);
  return field;
}

std::uint64_t StoredWireReader::integer(const StoredField& field) const {
  require_type(field, WireType::varint, what_, where_);
  return field.value;
}

const StoredBytes& StoredWireReader::bytes(const StoredField& field) const {
  require_type(field, WireType::bytes, what_, where_);
  return field.bytes;
}

}  // namespace normscope::files
