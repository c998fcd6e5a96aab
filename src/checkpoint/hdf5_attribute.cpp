#include <cstring>
#include <optional>

#include <fmt/core.h>

#include "hdf5_file.hpp"

namespace normscope::checkpoint {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

/// An object of the global heap.
std::span<const std::byte> heap_object(Hdf5File& file, std::uint64_t address, std::uint32_t wanted) {
  ByteCursor prefix = file.structure(address, 16, "a global heap");
  const std::span<const std::byte> magic = prefix.take(4);
  prefix.skip(4);
  const auto size = prefix.number<std::uint64_t>();
  if (std::memcmp(magic.data(), "GCOL", 4) != 0 || size < 16) {
    file.fail(ErrorCode::Format, fmt::format("has no global heap at byte {}", address));
  }
  ByteCursor objects = file.structure(address, size, "a global heap");
  objects.skip(16);
  while (objects.left() >= 16) {
    const auto index = objects.number<std::uint16_t>();
    objects.skip(6);
    const auto length = objects.number<std::uint64_t>();
    if (index == 0) break;
    const std::span<const std::byte> data = objects.take(length);
    if (index == wanted) return data;
    objects.skip((8 - length % 8) % 8);
  }
  file.fail(ErrorCode::Format,
            fmt::format("has no object {} in the global heap at byte {}", wanted, address));
}

/// The parts of an attribute, each padded to a multiple of 8 bytes in version 1.
struct Hdf5AttributeParts {
  std::string_view name;
  std::span<const std::byte> type{};
  std::span<const std::byte> data{};
};

std::optional<Hdf5AttributeParts> attribute_parts(Hdf5File& file, const Hdf5Message& message) {
  ByteCursor fields(message.data, "an attribute", file.where());
  const auto version = fields.number<std::uint8_t>();
  if (version < 1 || version > 3) {
    file.fail(ErrorCode::Unsupported,
              fmt::format("has an attribute of version {}, expected 1 to 3", version));
  }
  const auto flags = fields.number<std::uint8_t>();
  if (version > 1 && flags != 0) return std::nullopt;  // its type is elsewhere
  const auto name_size = fields.number<std::uint16_t>();
  const auto type_size = fields.number<std::uint16_t>();
  const auto space_size = fields.number<std::uint16_t>();
  if (version == 3) fields.skip(1);
  const auto padding = [version](std::uint64_t size) { return version == 1 ? (8 - size % 8) % 8 : 0; };
  const std::string_view name = text_of(fields.take(name_size));
  fields.skip(padding(name_size));
  const std::span<const std::byte> type = fields.take(type_size);
  fields.skip(padding(type_size));
  fields.skip(space_size + padding(space_size));
  return Hdf5AttributeParts{name, type, fields.rest()};
}

}  // namespace

std::string_view hdf5_text_attribute(Hdf5File& file, std::span<const Hdf5Message> messages,
                                     std::string_view name) {
  for (const Hdf5Message& message : messages) {
    if (message.kind != Hdf5Kind::attribute || message.is_shared) continue;
    const std::optional<Hdf5AttributeParts> parts = attribute_parts(file, message);
    if (!parts || parts->name != name) continue;
    ByteCursor type(parts->type, "an attribute's type", file.where());
    const auto kind = static_cast<Hdf5Class>(type.number<std::uint8_t>() & 15u);
    const unsigned of_text = type.number<std::uint8_t>() & 15u;
    type.skip(2);
    const auto size = type.number<std::uint32_t>();
    ByteCursor data(parts->data, "an attribute's value", file.where());
    if (kind == Hdf5Class::text) return text_of(data.take(size));
    if (kind != Hdf5Class::variable || of_text != 1) continue;
    const auto length = data.number<std::uint32_t>();
    const auto heap = data.number<std::uint64_t>();
    if (length == 0) return {};
    const std::span<const std::byte> object = heap_object(file, heap, data.number<std::uint32_t>());
    if (length > object.size())
      file.fail(ErrorCode::Format, "has an attribute that is longer than its heap's object");
    return text_of(object.first(length));
  }
  return {};
}

}  // namespace normscope::checkpoint
