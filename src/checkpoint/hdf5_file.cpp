#include "hdf5_file.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

namespace normscope::checkpoint {
namespace {

/// Limit on the bytes of structures that are visited: per byte of the file, and in addition.
constexpr std::uint64_t visits_per_byte = 16;
constexpr std::uint64_t visits_beyond = std::uint64_t{1} << 16;
constexpr std::uint16_t continuation = 0x10;

bool begins_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

bool is_read(std::uint16_t kind) {
  switch (static_cast<Hdf5Kind>(kind)) {
    case Hdf5Kind::dataspace:
    case Hdf5Kind::link_info:
    case Hdf5Kind::datatype:
    case Hdf5Kind::link:
    case Hdf5Kind::external_files:
    case Hdf5Kind::layout:
    case Hdf5Kind::filters:
    case Hdf5Kind::attribute:
    case Hdf5Kind::symbol_table: return true;
  }
  return false;
}

/// Reads the messages of one object header, which may continue at other places.
class Hdf5HeaderReader {
 public:
  explicit Hdf5HeaderReader(Hdf5File& file) : file_(file) {}

  std::vector<Hdf5Message> read(std::uint64_t address) {
    ByteCursor start = file_.structure_from(address, 16, "an object header");
    if (begins_with(start.rest(), "OHDR")) {
      read_version_2(address);
    } else {
      read_version_1(address);
    }
    // Continuations are found on the way, and each counts as visited.
    // NOLINTNEXTLINE(modernize-loop-convert): the list grows
    for (std::size_t i = 0; i < blocks_.size(); ++i) read_continuation(blocks_[i]);
    return std::move(messages_);
  }

 private:
  struct Block {
    std::uint64_t address;
    std::uint64_t size;
  };

  void read_version_1(std::uint64_t address) {
    ByteCursor prefix = file_.structure(address, 16, "an object header");
    const auto version = prefix.number<std::uint8_t>();
    if (version != 1) {
      file_.fail(ErrorCode::Unsupported,
                 fmt::format("object header at byte {} has version {}, expected 1 or 2", address, version));
    }
    prefix.skip(7);
    const auto size = prefix.number<std::uint32_t>();
    read_messages(file_.structure(address + 16, size, "an object header"));
  }

  void read_version_2(std::uint64_t address) {
    is_version_2_ = true;
    ByteCursor prefix = file_.structure_from(address, 6, "an object header");
    prefix.skip(4);
    if (const auto version = prefix.number<std::uint8_t>(); version != 2) {
      file_.fail(ErrorCode::Unsupported,
                 fmt::format("object header at byte {} has version {}, expected 1 or 2", address, version));
    }
    const auto flags = prefix.number<std::uint8_t>();
    has_order_ = (flags & 4) != 0;
    std::uint64_t before = 6;
    const std::uint64_t fields = ((flags & 0x20) != 0 ? 16u : 0u) + ((flags & 0x10) != 0 ? 4u : 0u);
    prefix.skip(fields);
    const unsigned width = 1u << (flags & 3u);
    const std::uint64_t size = prefix.number(width);
    before += fields + width;
    read_messages(file_.structure(address + before, size, "an object header"));
  }

  void read_continuation(Block block) {
    ByteCursor cursor = file_.structure(block.address, block.size, "a continued object header");
    if (!is_version_2_) return read_messages(cursor);
    if (!begins_with(cursor.rest(), "OCHK") || cursor.left() < 8) {
      file_.fail(ErrorCode::Format, fmt::format("has no continued object header at byte {}", block.address));
    }
    cursor.skip(4);
    read_messages(ByteCursor(cursor.take(cursor.left() - 4), "a continued object header", file_.where()));
  }

  void read_messages(ByteCursor cursor) {
    const std::size_t prefix = is_version_2_ ? (has_order_ ? 6u : 4u) : 8u;
    // A rest that is shorter than a message is a gap.
    while (cursor.left() >= prefix) {
      const std::uint16_t kind =
          is_version_2_ ? cursor.number<std::uint8_t>() : cursor.number<std::uint16_t>();
      const auto size = cursor.number<std::uint16_t>();
      const auto flags = cursor.number<std::uint8_t>();
      cursor.skip(prefix - (is_version_2_ ? 4 : 5));
      const std::span<const std::byte> data = cursor.take(size);
      if (kind == continuation) {
        ByteCursor fields(data, "a continuation", file_.where());
        file_.arena().charge(growth, sizeof(Block));
        const auto address = fields.number<std::uint64_t>();
        blocks_.push_back({address, fields.number<std::uint64_t>()});
      } else if (is_read(kind)) {
        file_.arena().charge(growth, sizeof(Hdf5Message));
        messages_.push_back({static_cast<Hdf5Kind>(kind), (flags & 2) != 0, data});
      }
    }
  }

  Hdf5File& file_;
  std::vector<Hdf5Message> messages_;
  std::vector<Block> blocks_;
  bool is_version_2_ = false;
  bool has_order_ = false;
};

}  // namespace

Hdf5File::Hdf5File(std::span<const std::byte> bytes, Arena& arena, const std::string& where)
    : bytes_(bytes),
      arena_(arena),
      where_(where),
      visits_left_(visits_per_byte * std::uint64_t{bytes.size()} + visits_beyond) {}

void Hdf5File::visit(std::uint64_t size) {
  if (size > visits_left_) {
    fail(ErrorCode::Format, "has structures that refer to the same places many times, or in circles");
  }
  visits_left_ -= size;
}

ByteCursor Hdf5File::structure_from(std::uint64_t address, std::uint64_t size, std::string_view what) {
  if (address > bytes_.size() || size > bytes_.size() - address) {
    fail(ErrorCode::Format,
         fmt::format("{} at byte {} extends beyond the file, which has {}", what, address, bytes_.size()));
  }
  visit(size);
  return {bytes_.subspan(static_cast<std::size_t>(address)), what, where_};
}

ByteCursor Hdf5File::structure(std::uint64_t address, std::uint64_t size, std::string_view what) {
  return {structure_from(address, size, what).take(size), what, where_};
}

std::uint64_t read_hdf5_superblock(Hdf5File& file) {
  ByteCursor fields = file.structure_from(0, 12, "the superblock");
  if (!begins_with(fields.rest(), "\x89HDF\r\n\x1a\n"))
    file.fail(ErrorCode::Format, "does not begin as HDF5 files do");
  fields.skip(8);
  const auto version = fields.number<std::uint8_t>();
  if (version > 3) {
    file.fail(ErrorCode::Unsupported,
              fmt::format("has a superblock of version {}, expected 0 to 3", version));
  }
  if (version < 2) fields.skip(4);  // versions of other structures
  const auto address_size = fields.number<std::uint8_t>();
  const auto length_size = fields.number<std::uint8_t>();
  if (address_size != 8 || length_size != 8) {
    file.fail(ErrorCode::Unsupported, fmt::format("has addresses of {} and lengths of {} bytes, expected 8",
                                                  address_size, length_size));
  }
  // Sizes of tree nodes, and flags.
  fields.skip(version >= 2 ? 1 : version == 1 ? 13 : 9);
  if (const auto base = fields.number<std::uint64_t>(); base != 0) {
    file.fail(ErrorCode::Unsupported, fmt::format("has addresses relative to byte {}, expected 0", base));
  }
  fields.skip(8);  // free space, or an extension
  if (const auto end = fields.number<std::uint64_t>(); end > file.bytes().size()) {
    file.fail(ErrorCode::Format, fmt::format("has {} bytes, its superblock states {}; the file is truncated",
                                             file.bytes().size(), end));
  }
  // Before version 2: the driver's block, and the name of the root's own entry.
  if (version < 2) fields.skip(16);
  return fields.number<std::uint64_t>();
}

std::vector<Hdf5Message> read_hdf5_object(Hdf5File& file, std::uint64_t address) {
  return Hdf5HeaderReader(file).read(address);
}

const Hdf5Message* find_hdf5_message(std::span<const Hdf5Message> messages, Hdf5Kind kind) {
  const auto found = std::find_if(messages.begin(), messages.end(),
                                  [kind](const Hdf5Message& message) { return message.kind == kind; });
  return found == messages.end() ? nullptr : &*found;
}

}  // namespace normscope::checkpoint
