#include "hdf5_dataset.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <normscope/bytes/quote.hpp>
#include <normscope/bytes/shape.hpp>

namespace normscope::checkpoint {
namespace {

constexpr unsigned most_hdf5_dimensions = 32;
/// Memory of a view, with its allocation and the pointer to it.
constexpr std::size_t hdf5_view_bytes = sizeof(Hdf5Chunked) + sizeof(SwappedElements) + 256;

struct Hdf5Type {
  Dtype dtype = Dtype::F32;
  unsigned width = 4;
  bool is_big_endian = false;
};

/// The contents of the first bytes of a datatype message.
struct Hdf5TypeHead {
  Hdf5Class kind{};
  std::uint32_t flags = 0;
  std::uint32_t size = 0;
};

/// How a dataset stores its elements.
enum class Hdf5Storage : unsigned { in_header = 0, in_one_piece = 1, in_chunks = 2 };

Hdf5TypeHead take_type_head(ByteCursor& fields) {
  const auto kind = static_cast<std::uint32_t>(fields.number(1));
  const auto flags = static_cast<std::uint32_t>(fields.number(3));
  return {static_cast<Hdf5Class>(kind & 15u), flags, fields.number<std::uint32_t>()};
}

std::optional<Dtype> integer_of(const Hdf5TypeHead& head, ByteCursor& fields) {
  const auto first_bit = fields.number<std::uint16_t>();
  const auto precision = fields.number<std::uint16_t>();
  if (first_bit != 0 || precision != 8 * std::uint64_t{head.size}) return std::nullopt;
  const bool is_signed = (head.flags & 8) != 0;
  switch (head.size) {
    case 1: return is_signed ? Dtype::I8 : Dtype::U8;
    case 2: return is_signed ? Dtype::I16 : Dtype::U16;
    case 4: return is_signed ? Dtype::I32 : Dtype::U32;
    case 8: return is_signed ? Dtype::I64 : Dtype::U64;
    default: return std::nullopt;
  }
}

/// The layouts of bits that are IEEE's, and bfloat16's.
std::optional<Dtype> floating_of(const Hdf5TypeHead& head, ByteCursor& fields) {
  struct Layout {
    Dtype dtype;
    unsigned bytes, exponent, mantissa;
    std::uint32_t bias;
  };
  constexpr Layout layouts[] = {{Dtype::F16, 2, 5, 10, 15},
                                {Dtype::BF16, 2, 8, 7, 127},
                                {Dtype::F32, 4, 8, 23, 127},
                                {Dtype::F64, 8, 11, 52, 1023}};
  const auto first_bit = fields.number<std::uint16_t>();
  const auto precision = fields.number<std::uint16_t>();
  const auto exponent_at = fields.number<std::uint8_t>();
  const auto exponent = fields.number<std::uint8_t>();
  const auto mantissa_at = fields.number<std::uint8_t>();
  const auto mantissa = fields.number<std::uint8_t>();
  const auto bias = fields.number<std::uint32_t>();
  constexpr std::uint32_t leading_one_is_implied = 2u << 4;
  const bool is_plain = first_bit == 0 && mantissa_at == 0 && (head.flags & 0x70) == leading_one_is_implied;
  for (const Layout& layout : layouts) {
    if (is_plain && head.size == layout.bytes && precision == 8 * layout.bytes &&
        exponent == layout.exponent && exponent_at == layout.mantissa && mantissa == layout.mantissa &&
        bias == layout.bias && (head.flags >> 8 & 0xff) == 8 * layout.bytes - 1) {
      return layout.dtype;
    }
  }
  return std::nullopt;
}

/// The type of elements; empty for text.
std::optional<Hdf5Type> element_type(Hdf5File& file, std::span<const Hdf5Message> messages,
                                     const std::string& quoted) {
  const Hdf5Message& message = *find_hdf5_message(messages, Hdf5Kind::datatype);
  ByteCursor fields(message.data, "a datatype", file.where());
  Hdf5TypeHead head = take_type_head(fields);
  constexpr std::uint32_t of_text = 1;
  if (head.kind == Hdf5Class::text || (head.kind == Hdf5Class::variable && (head.flags & 15) == of_text))
    return std::nullopt;
  // Elements of an enumeration, as h5py stores booleans, are those of its base type.
  if (head.kind == Hdf5Class::enumeration) head = take_type_head(fields);
  const bool is_vax = head.kind == Hdf5Class::floating && (head.flags & 0x40) != 0;
  if (is_vax) file.fail(ErrorCode::Unsupported, fmt::format("tensor {} has elements in VAX order", quoted));
  std::optional<Dtype> dtype;
  if (head.kind == Hdf5Class::integer) dtype = integer_of(head, fields);
  if (head.kind == Hdf5Class::floating) dtype = floating_of(head, fields);
  // Keras stores bfloat16 as opaque bytes and names it in an attribute.
  if (head.kind == Hdf5Class::opaque && head.size == 2 &&
      hdf5_text_attribute(file, messages, "dtype") == "bfloat16") {
    return Hdf5Type{Dtype::BF16, 2, false};
  }
  if (!dtype) {
    file.fail(ErrorCode::Unsupported,
              fmt::format("tensor {} has elements of HDF5's class {} in {} bytes, expected integers or IEEE "
                          "floating-point numbers",
                          quoted, static_cast<unsigned>(head.kind), head.size));
  }
  return Hdf5Type{*dtype, head.size, head.size > 1 && (head.flags & 1) != 0};
}

std::span<std::uint64_t> read_extents(Hdf5File& file, const Hdf5Message& message, const std::string& quoted) {
  ByteCursor fields(message.data, "a dataspace", file.where());
  const auto version = fields.number<std::uint8_t>();
  const auto axes = fields.number<std::uint8_t>();
  if (version < 1 || version > 2 || axes > most_hdf5_dimensions) {
    file.fail(
        ErrorCode::Unsupported,
        fmt::format("tensor {} has a dataspace of version {} with {} axes, expected version 1 or 2 and at "
                    "most {}",
                    quoted, version, axes, most_hdf5_dimensions));
  }
  fields.skip(1);
  const auto kind = fields.number<std::uint8_t>();
  constexpr unsigned null_space = 2;
  if (version == 1) fields.skip(4);
  const bool is_null = version == 2 && kind == null_space;
  const std::span<std::uint64_t> shape = file.arena().allocate<std::uint64_t>(is_null ? 1 : axes);
  if (!is_null) {
    for (std::uint64_t& extent : shape) extent = fields.number<std::uint64_t>();
  }
  return shape;
}

}  // namespace

/// The position of a dataset's elements: in place, or in chunks.
struct Hdf5Datasets::Placement {
  std::span<const std::byte> bytes{};
  std::uint64_t tree = hdf5_nowhere;
  std::vector<std::uint64_t> extent{};  ///< of a chunk; empty for elements in place
};

Hdf5Datasets::Placement Hdf5Datasets::placement(const std::string& quoted,
                                                std::span<const Hdf5Message> messages) {
  const Hdf5Message& message = *find_hdf5_message(messages, Hdf5Kind::layout);
  ByteCursor fields(message.data, "a data layout", file_.where());
  const auto version = fields.number<std::uint8_t>();
  const unsigned kind = version == 3 || version == 4 ? fields.number<std::uint8_t>() : 0xffu;
  const auto storage = static_cast<Hdf5Storage>(kind);
  Placement placed;
  if (storage == Hdf5Storage::in_header) {
    placed.bytes = fields.take(fields.number<std::uint16_t>());
  } else if (storage == Hdf5Storage::in_one_piece) {
    const auto address = fields.number<std::uint64_t>();
    const auto size = fields.number<std::uint64_t>();
    if (size == 0) return placed;
    const std::span<const std::byte> file = file_.bytes();
    if (address > file.size() || size > file.size() - address) {
      file_.fail(ErrorCode::Format,
                 fmt::format("tensor {} has {} bytes at byte {} of {}", quoted, size, address, file.size()));
    }
    placed.bytes = file.subspan(static_cast<std::size_t>(address), static_cast<std::size_t>(size));
    occupy(address, size);
  } else if (storage == Hdf5Storage::in_chunks && version == 3) {
    const auto axes = fields.number<std::uint8_t>();
    placed.tree = fields.number<std::uint64_t>();
    for (unsigned axis = 0; axis < axes; ++axis) placed.extent.push_back(fields.number<std::uint32_t>());
  } else {
    file_.fail(
        ErrorCode::Unsupported,
        fmt::format("tensor {} has a layout of version {} and class {}, expected compact, contiguous or "
                    "chunks in a tree; write it without libver=\"latest\"",
                    quoted, version, kind));
  }
  return placed;
}

void Hdf5Datasets::occupy(std::uint64_t begin, std::uint64_t size) {
  file_.arena().charge(growth, sizeof(Hdf5Extent));
  occupied_.push_back({begin, size});
}

void Hdf5Datasets::add(const std::string& name, std::span<const Hdf5Message> messages) {
  const std::string quoted = bytes::quote(name);
  for (const Hdf5Message& message : messages) {
    const bool is_shared = message.is_shared && message.kind != Hdf5Kind::attribute;
    if (is_shared || message.kind == Hdf5Kind::external_files) {
      file_.fail(ErrorCode::Unsupported,
                 fmt::format("tensor {} has {}, expected it in itself", quoted,
                             is_shared ? "a committed type" : "its elements in another file"));
    }
  }
  const Hdf5Message* space = find_hdf5_message(messages, Hdf5Kind::dataspace);
  if (space == nullptr) file_.fail(ErrorCode::Format, fmt::format("tensor {} has no dataspace", quoted));
  const std::optional<Hdf5Type> type = element_type(file_, messages, quoted);
  if (!type) return;
  Arena& arena = file_.arena();
  const std::span<std::uint64_t> shape = read_extents(file_, *space, quoted);
  arena.charge(growth, sizeof(Tensor));
  const std::span<char> kept = arena.allocate<char>(name.size());
  std::copy(name.begin(), name.end(), kept.begin());
  Tensor tensor{{kept.data(), kept.size()}, type->dtype, shape, {}, nullptr};

  Placement placed = placement(quoted, messages);
  const Hdf5Message* filters = find_hdf5_message(messages, Hdf5Kind::filters);
  if (placed.extent.empty()) {
    if (filters != nullptr)
      file_.fail(ErrorCode::Format, fmt::format("tensor {} is packed, but not in chunks", quoted));
    tensor.bytes = bytes::StoredBytes(placed.bytes);
  } else {
    Hdf5Grid grid;
    grid.shape.assign(shape.begin(), shape.end());
    grid.shape.push_back(type->width);
    grid.extent = std::move(placed.extent);
    if (filters != nullptr) grid.filters = read_hdf5_filters(file_, *filters, quoted);
    read_chunks(grid, placed.tree, quoted);
    arena.charge(1, hdf5_view_bytes + 16 * grid.shape.size());
    parsed_.views.push_back(std::make_unique<Hdf5Chunked>(
        file_.bytes(), std::move(grid), cache_, fmt::format("{}: tensor {}", file_.where(), quoted)));
    tensor.bytes = bytes::StoredBytes(*parsed_.views.back());
  }
  check_tensor_size(tensor, file_.where());
  if (type->is_big_endian && tensor.bytes.size() != 0) {
    arena.charge(1, hdf5_view_bytes);
    parsed_.views.push_back(std::make_unique<SwappedElements>(tensor.bytes, type->width));
    tensor.bytes = bytes::StoredBytes(*parsed_.views.back());
  }
  parsed_.tensors.push_back(tensor);
}

void Hdf5Datasets::read_chunks(Hdf5Grid& grid, std::uint64_t tree, const std::string& quoted) {
  const bool fits = grid.extent.size() == grid.shape.size() && grid.shape.size() > 1 &&
                    grid.extent.back() == grid.shape.back();
  const std::optional<std::uint64_t> chunk = bytes::element_count(grid.extent);
  if (!fits || !chunk || *chunk == 0 || *chunk > largest_hdf5_chunk) {
    file_.fail(
        ErrorCode::Unsupported,
        fmt::format("tensor {} has chunks of {} axes and {} bytes, expected {} axes "
                    "and 1 to {} bytes",
                    quoted, grid.extent.size(), chunk.value_or(0), grid.shape.size(), largest_hdf5_chunk));
  }
  std::vector<std::uint64_t> counts(grid.shape.size());
  for (std::size_t axis = 0; axis < counts.size(); ++axis) counts[axis] = grid.count(axis);
  const std::optional<std::uint64_t> total = bytes::element_count(counts);
  if (!total || !bytes::element_count(grid.shape) || *total > file_.bytes().size()) {
    file_.fail(ErrorCode::Format, fmt::format("tensor {} has more chunks than its file has bytes", quoted));
  }
  grid.chunks = file_.arena().allocate<Hdf5Chunk>(*total);
  if (*total == 0) return;
  if (tree == hdf5_nowhere) {
    file_.fail(ErrorCode::Unsupported, fmt::format("tensor {} has no stored elements", quoted));
  }
  read_hdf5_chunks(file_, tree, grid, quoted);
  for (const Hdf5Chunk& chunk_stored : grid.chunks)
    occupy(chunk_stored.stored.begin, chunk_stored.stored.size);
}

void Hdf5Datasets::finish() {
  std::sort(occupied_.begin(), occupied_.end(),
            [](const Hdf5Extent& a, const Hdf5Extent& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < occupied_.size(); ++i) {
    const Hdf5Extent& before = occupied_[i - 1];
    if (before.begin + before.size <= occupied_[i].begin) continue;
    file_.fail(ErrorCode::Format,
               fmt::format("has elements of tensors that overlap, at byte {}", occupied_[i].begin));
  }
}

}  // namespace normscope::checkpoint
