#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>

#include "bytes/zip_files.hpp"
#include "checkpoint/fixture_files.hpp"
#include "support/files.hpp"

namespace normscope::test {

inline constexpr std::uint64_t hdf5_nowhere = ~std::uint64_t{0};

/// Kinds of messages in an object header.
enum class Hdf5Message : std::uint8_t {
  dataspace = 0x01,
  link_info = 0x02,
  datatype = 0x03,
  link = 0x06,
  external_files = 0x07,
  layout = 0x08,
  filters = 0x0b,
  attribute = 0x0c,
  continuation = 0x10,
  symbol_table = 0x11,
};

inline std::string octet(std::uint64_t value) { return {static_cast<char>(value)}; }
inline std::string le16(std::uint64_t value) { return le(static_cast<std::uint16_t>(value)); }
inline std::string le32(std::uint64_t value) { return le(static_cast<std::uint32_t>(value)); }
inline std::string le64(std::uint64_t value) { return le(value); }

/// A message of a header of version 2.
inline std::string hdf5_message(Hdf5Message kind, const std::string& data, unsigned flags = 0) {
  return octet(static_cast<std::uint64_t>(kind)) + le16(data.size()) + octet(flags) + data;
}
inline std::string hdf5_link(const std::string& name, std::uint64_t object) {
  return hdf5_message(Hdf5Message::link, octet(1) + octet(0) + octet(name.size()) + name + le64(object));
}
inline std::string hdf5_space(const std::vector<std::uint64_t>& shape) {
  std::string space = octet(2) + octet(shape.size()) + octet(0) + octet(1);
  for (const std::uint64_t extent : shape) space += le64(extent);
  return hdf5_message(Hdf5Message::dataspace, space);
}
/// A datatype of the class of integers.
inline std::string hdf5_integers(unsigned bytes, unsigned first_bit, unsigned precision) {
  return hdf5_message(Hdf5Message::datatype,
                      octet(0x10) + octet(8) + le16(0) + le32(bytes) + le16(first_bit) + le16(precision));
}
/// The type float32, with that order of bytes and bias.
inline std::string hdf5_floats(unsigned order = 0, unsigned bias = 127) {
  return hdf5_message(Hdf5Message::datatype, octet(0x11) + octet(0x20 | order) + octet(31) + octet(0) +
                                                 le32(4) + le16(0) + le16(32) + octet(23) + octet(8) +
                                                 octet(0) + octet(23) + le32(bias));
}
/// A layout of elements within the header.
inline std::string hdf5_compact(const std::string& elements) {
  return hdf5_message(Hdf5Message::layout, octet(3) + octet(0) + le16(elements.size()) + elements);
}
inline std::string hdf5_contiguous(std::uint64_t address, std::uint64_t size) {
  return hdf5_message(Hdf5Message::layout, octet(3) + octet(1) + le64(address) + le64(size));
}
/// A layout of chunks; the last axis of their extent is the bytes of an element.
inline std::string hdf5_chunks(std::uint64_t tree, const std::vector<std::uint64_t>& extent) {
  std::string layout = octet(3) + octet(2) + octet(extent.size()) + le64(tree);
  for (const std::uint64_t length : extent) layout += le32(length);
  return hdf5_message(Hdf5Message::layout, layout);
}
inline std::string hdf5_filters(const std::string& data) { return hdf5_message(Hdf5Message::filters, data); }
/// The pipeline of version 2 with deflate alone.
inline std::string hdf5_deflate() {
  return hdf5_filters(octet(2) + octet(1) + le16(1) + le16(0) + le16(1) + le32(6));
}
/// A node of a tree of links (kind 0) or of chunks (kind 1).
inline std::string hdf5_node(unsigned kind, unsigned level, const std::vector<std::string>& entries) {
  std::string node = "TREE" + octet(kind) + octet(level) + le16(entries.size()) + std::string(16, '\xff');
  for (const std::string& entry : entries) node += entry;
  return node;
}

/// An HDF5 file, written structure by structure. Its checksums are zero, which the reader does not check.
class Hdf5File {
 public:
  /// Address of the first structure.
  static constexpr std::uint64_t begin = 96;

  /// Adds a structure and returns its address.
  std::uint64_t add(const std::string& structure) {
    const std::uint64_t address = begin + body_.size();
    body_ += structure;
    return address;
  }
  /// An object header of version 2 with these messages.
  std::uint64_t object(const std::string& messages) {
    return add("OHDR" + octet(2) + octet(2) + le32(messages.size()) + messages + std::string(8, '\0'));
  }
  /// The file with that root, whose superblock has version 1 or 2.
  [[nodiscard]] std::string file(std::uint64_t root, unsigned version = 2, std::uint64_t base = 0) const {
    std::string text = "\x89HDF\r\n\x1a\n" + octet(version);
    if (version == 1) text += std::string(4, '\0');
    text += octet(8) + octet(8) + std::string(version == 1 ? 13 : 1, '\0');
    text += le64(base) + le64(hdf5_nowhere) + le64(begin + body_.size());
    if (version == 1) text += le64(hdf5_nowhere) + le64(0);
    text += le64(root);
    text.resize(begin, '\0');
    return text + body_;
  }

 private:
  std::string body_;
};

/// A file of the dataset "a" with these messages.
inline std::string hdf5_dataset(const std::string& messages) {
  Hdf5File file;
  const std::uint64_t dataset = file.object(messages);
  return file.file(file.object(hdf5_link("a", dataset)));
}

inline checkpoint::Checkpoint open_hdf5(const std::string& bytes) {
  return checkpoint::Checkpoint("m.h5",
                                [&bytes](const auto&) { return std::make_unique<MemoryFile>(bytes); });
}

/// Opens a file of these bytes and reads every tensor.
inline void read_hdf5(const std::string& bytes) {
  const checkpoint::Checkpoint checkpoint = open_hdf5(bytes);
  for (const checkpoint::Tensor& tensor : checkpoint.tensors()) {
    EXPECT_EQ(read(tensor).size(), tensor.elements());
  }
}

/// The error message about a file of these bytes, without the file's name at its start.
inline std::string hdf5_complaint(ErrorCode code, const std::string& bytes) {
  const std::string message = error_of(code, [&bytes] { read_hdf5(bytes); });
  const std::size_t name = message.find("m.h5: ");
  return name == std::string::npos ? message : message.substr(name + 6);
}

}  // namespace normscope::test
