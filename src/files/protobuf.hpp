#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>

/// The wire format of protocol buffers: a message is a run of fields, each a varint key
/// (number · 8 + wire type) and a value. Messages within are bytes to be read by another reader, so
/// nothing here recurses.
namespace normscope::files {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  std::uint64_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;           ///< of a varint
  std::span<const std::byte> bytes;  ///< of every other type
};

/// A field up to its bytes.
struct WireKey {
  std::uint64_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  ///< of a varint
  std::uint64_t size = 0;   ///< number of bytes that follow, of every other type
};

/// Reads one message, or a packed run of varints, front to back without copying.
///
/// Errors    Format, in messages that begin with `where` and name the message `what`
class WireReader {
 public:
  WireReader(std::span<const std::byte> message, std::string_view what, const std::string& where)
      : rest_(message), what_(what), where_(where) {}

  /// The next field, nothing at the end.
  [[nodiscard]] std::optional<WireField> next();
  /// The beginning of the next field; its bytes are next.
  ///
  /// Requires  !empty()
  [[nodiscard]] WireKey key();
  /// The next varint of at most 10 bytes.
  [[nodiscard]] std::uint64_t varint();
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

  /// Values of a field that must have that type.
  [[nodiscard]] std::uint64_t integer(const WireField& field) const;
  [[nodiscard]] float real(const WireField& field) const;
  [[nodiscard]] std::span<const std::byte> bytes(const WireField& field) const;
  [[nodiscard]] std::string_view text(const WireField& field) const;

  /// Calls `take` with every integer of a repeated field, which may come one by one or packed.
  template <typename Take>
  void integers(const WireField& field, const Take& take) const {
    if (field.type == WireType::varint) return take(field.value);
    WireReader packed(bytes(field), what_, where_);
    while (!packed.empty()) take(packed.varint());
  }

 private:
  [[noreturn]] void fail(const std::string& fact) const;

  std::span<const std::byte> rest_;
  std::string_view what_;
  const std::string& where_;
};

/// A field of a message that may not be in memory.
struct StoredField {
  std::uint64_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  ///< of a varint
  StoredBytes bytes;        ///< of every other type
};

/// Reads one message front to back. Of a message that is not in memory, only the beginnings of its fields are
/// read.
///
/// Errors    as `WireReader`; Io
class StoredWireReader {
 public:
  StoredWireReader(const StoredBytes& message, std::string_view what, const std::string& where)
      : rest_(message), what_(what), where_(where) {}

  /// The next field, nothing at the end.
  [[nodiscard]] std::optional<StoredField> next();

  /// Values of a field that must have that type.
  [[nodiscard]] std::uint64_t integer(const StoredField& field) const;
  [[nodiscard]] const StoredBytes& bytes(const StoredField& field) const;

  /// Calls `take` with every integer of a repeated field, which may come one by one or packed.
  template <typename Take>
  void integers(const StoredField& field, const Take& take) const {
    if (field.type == WireType::varint) return take(field.value);
    std::vector<std::byte> buffer;
    WireReader packed(bytes(field).fetch(buffer), what_, where_);
    while (!packed.empty()) take(packed.varint());
  }

 private:
  StoredBytes rest_;
  std::string_view what_;
  const std::string& where_;
  std::vector<std::byte> beginning_{};  ///< of a field
};

}  // namespace normscope::files
