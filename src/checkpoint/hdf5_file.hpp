#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "byte_cursor.hpp"
#include "parsed_file.hpp"

/// The structures of an HDF5 file below its groups and datasets. Addresses and lengths have 8 bytes.
namespace normscope::checkpoint {

/// The address that stands for a missing object.
inline constexpr std::uint64_t hdf5_nowhere = ~std::uint64_t{0};

/// The kinds of header messages that are read.
enum class Hdf5Kind : std::uint16_t {
  dataspace = 0x01,
  link_info = 0x02,
  datatype = 0x03,
  link = 0x06,
  external_files = 0x07,
  layout = 0x08,
  filters = 0x0b,
  attribute = 0x0c,
  symbol_table = 0x11,
};

/// Classes of datatypes.
enum class Hdf5Class : unsigned {
  integer = 0,
  floating = 1,
  text = 3,
  opaque = 5,
  enumeration = 8,
  variable = 9
};

struct Hdf5Message {
  Hdf5Kind kind{};
  bool is_shared = false;  ///< `data` refers to a message elsewhere
  std::span<const std::byte> data{};
};

struct Hdf5Link {
  std::string_view name;
  std::uint64_t object = 0;  ///< address of its header
};

/// The bytes of a file, with a limit on the number of bytes that are visited. Every structure that is read
/// counts with its size, and a valid file refers to each once. A file whose structures refer to each other in
/// circles, or to the same position many times, is therefore refused after time that is linear in its size.
class Hdf5File {
 public:
  Hdf5File(std::span<const std::byte> bytes, Arena& arena, const std::string& where);

  /// The bytes of a structure.
  ///
  /// Errors    Format where they extend beyond the file
  [[nodiscard]] ByteCursor structure(std::uint64_t address, std::uint64_t size, std::string_view what);
  /// A structure whose size is not known yet: all bytes from its address on, at least `size`.
  [[nodiscard]] ByteCursor structure_from(std::uint64_t address, std::uint64_t size, std::string_view what);
  /// Counts bytes that are visited.
  ///
  /// Errors    Format beyond the limit
  void visit(std::uint64_t size);

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] Arena& arena() { return arena_; }
  [[nodiscard]] const std::string& where() const { return where_; }
  [[noreturn]] void fail(ErrorCode code, const std::string& what) const { bytes::fail(code, where_, what); }

 private:
  std::span<const std::byte> bytes_;
  Arena& arena_;
  const std::string& where_;
  std::uint64_t visits_left_;
};

/// Address of the root group's header, from a superblock of version 0 to 3.
[[nodiscard]] std::uint64_t read_hdf5_superblock(Hdf5File& file);

/// The messages of an object header, of version 1 or 2, that are of a kind above.
[[nodiscard]] std::vector<Hdf5Message> read_hdf5_object(Hdf5File& file, std::uint64_t address);

/// The first message of that kind, or null.
[[nodiscard]] const Hdf5Message* find_hdf5_message(std::span<const Hdf5Message> messages, Hdf5Kind kind);

/// The links of a group, from a symbol table or from link messages.
///
/// Errors    Unsupported for links that are not hard and for link storage of another kind
[[nodiscard]] std::vector<Hdf5Link> read_hdf5_links(Hdf5File& file, std::span<const Hdf5Message> messages);

/// Text of a string attribute of that name, of fixed or variable length; empty if there is none.
[[nodiscard]] std::string_view hdf5_text_attribute(Hdf5File& file, std::span<const Hdf5Message> messages,
                                                   std::string_view name);

}  // namespace normscope::checkpoint
