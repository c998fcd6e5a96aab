#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include <normscope/bytes/quote.hpp>

#include "hdf5_file.hpp"

namespace normscope::checkpoint {
namespace {

void expect_magic(Hdf5File& file, ByteCursor& cursor, std::string_view magic, std::string_view what) {
  const std::span<const std::byte> found = cursor.take(magic.size());
  if (std::memcmp(found.data(), magic.data(), magic.size()) != 0) {
    file.fail(ErrorCode::Format, fmt::format("has no {} where one was expected", what));
  }
}

/// The links of a group whose names are in a local heap and whose entries are the leaves of a tree.
class Hdf5SymbolTable {
 public:
  Hdf5SymbolTable(Hdf5File& file, std::vector<Hdf5Link>& links) : file_(file), links_(links) {}

  void read(const Hdf5Message& message) {
    ByteCursor fields(message.data, "a symbol table", file_.where());
    const auto tree = fields.number<std::uint64_t>();
    read_heap(fields.number<std::uint64_t>());
    read_node(tree, std::nullopt);
  }

 private:
  void read_heap(std::uint64_t address) {
    ByteCursor heap = file_.structure(address, 32, "a local heap");
    expect_magic(file_, heap, "HEAP", "local heap");
    heap.skip(4);
    const auto size = heap.number<std::uint64_t>();
    heap.skip(8);
    names_ = file_.structure(heap.number<std::uint64_t>(), size, "a local heap's names").rest();
  }

  /// A node of the tree; levels count down to 0, so that no path is a circle.
  void read_node(std::uint64_t address, std::optional<unsigned> expected_level) {
    ByteCursor node = file_.structure_from(address, 24, "a tree of links");
    expect_magic(file_, node, "TREE", "tree of links");
    const auto kind = node.number<std::uint8_t>();
    const unsigned level = node.number<std::uint8_t>();
    if (kind != 0 || level != expected_level.value_or(level)) {
      file_.fail(ErrorCode::Format, fmt::format("tree of links at byte {} has kind {} and level {}, expected "
                                                "kind 0 and level {}",
                                                address, kind, level, expected_level.value_or(level)));
    }
    const auto children = node.number<std::uint16_t>();
    ByteCursor entries = file_.structure(address + 24, std::uint64_t{children} * 16, "a tree of links");
    for (unsigned i = 0; i < children; ++i) {
      entries.skip(8);
      const auto child = entries.number<std::uint64_t>();
      level == 0 ? read_leaf(child) : read_node(child, level - 1);
    }
  }

  void read_leaf(std::uint64_t address) {
    ByteCursor leaf = file_.structure_from(address, 8, "a list of links");
    expect_magic(file_, leaf, "SNOD", "list of links");
    leaf.skip(2);
    const auto count = leaf.number<std::uint16_t>();
    ByteCursor entries = file_.structure(address + 8, std::uint64_t{count} * 40, "a list of links");
    for (unsigned i = 0; i < count; ++i) {
      const auto name = entries.number<std::uint64_t>();
      const auto object = entries.number<std::uint64_t>();
      const auto cached = entries.number<std::uint32_t>();
      entries.skip(20);
      add(name_at(name), object, cached == 2);
    }
  }

  std::string_view name_at(std::uint64_t offset) {
    if (offset < names_.size()) {
      const std::span<const std::byte> rest = names_.subspan(static_cast<std::size_t>(offset));
      const auto end = std::find(rest.begin(), rest.end(), std::byte{0});
      const auto size = static_cast<std::size_t>(end - rest.begin());
      file_.visit(size);
      if (end != rest.end()) return {reinterpret_cast<const char*>(rest.data()), size};
    }
    file_.fail(ErrorCode::Format,
               fmt::format("a link's name at byte {} of a heap of {} has no end", offset, names_.size()));
  }

  void add(std::string_view name, std::uint64_t object, bool is_soft) {
    if (is_soft) {
      file_.fail(ErrorCode::Unsupported,
                 fmt::format("link {} leads to a name, expected an object", bytes::quote(name)));
    }
    file_.arena().charge(growth, sizeof(Hdf5Link));
    links_.push_back({name, object});
  }

  Hdf5File& file_;
  std::vector<Hdf5Link>& links_;
  std::span<const std::byte> names_{};
};

Hdf5Link read_link(Hdf5File& file, const Hdf5Message& message) {
  ByteCursor fields(message.data, "a link", file.where());
  if (const auto version = fields.number<std::uint8_t>(); version != 1) {
    file.fail(ErrorCode::Unsupported, fmt::format("has a link of version {}, expected 1", version));
  }
  const auto flags = fields.number<std::uint8_t>();
  const unsigned kind = (flags & 8) != 0 ? fields.number<std::uint8_t>() : 0;
  if ((flags & 4) != 0) fields.skip(8);
  if ((flags & 16) != 0) fields.skip(1);
  const std::span<const std::byte> name = fields.take(fields.number(1u << (flags & 3u)));
  const std::string_view text(reinterpret_cast<const char*>(name.data()), name.size());
  if (kind != 0) {
    file.fail(
        ErrorCode::Unsupported,
        fmt::format("link {} leads to a name or to another file, expected an object", bytes::quote(text)));
  }
  return {text, fields.number<std::uint64_t>()};
}

void expect_no_dense_links(Hdf5File& file, const Hdf5Message& message) {
  ByteCursor fields(message.data, "link information", file.where());
  fields.skip(1);
  const auto flags = fields.number<std::uint8_t>();
  if ((flags & 1) != 0) fields.skip(8);
  if (fields.number<std::uint64_t>() == hdf5_nowhere) return;
  file.fail(
      ErrorCode::Unsupported,
      "has a group whose links are in a fractal heap, which is not read; write it without libver=\"latest\" "
      "and track_order");
}

}  // namespace

std::vector<Hdf5Link> read_hdf5_links(Hdf5File& file, std::span<const Hdf5Message> messages) {
  std::vector<Hdf5Link> links;
  for (const Hdf5Message& message : messages) {
    if (message.kind == Hdf5Kind::symbol_table) Hdf5SymbolTable(file, links).read(message);
    if (message.kind == Hdf5Kind::link_info) expect_no_dense_links(file, message);
    if (message.kind != Hdf5Kind::link) continue;
    file.arena().charge(growth, sizeof(Hdf5Link));
    links.push_back(read_link(file, message));
  }
  return links;
}

}  // namespace normscope::checkpoint
