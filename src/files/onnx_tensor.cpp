#include "readers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>
#include "parsed_file.hpp"

#include "protobuf.hpp"

namespace normscope::files {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t most_axes = 64;

// Fields of TensorProto.
enum Field : std::uint64_t {
  dims = 1,
  data_type = 2,
  segment = 3,
  float_data = 4,
  int32_data = 5,
  int64_data = 7,
  name_field = 8,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
  external_data = 13,
  data_location = 14,
};

constexpr std::uint64_t string_type = 8;
/// Memory of an entry in a map of tensors with elements in other files.
constexpr std::size_t external_entry_bytes = 160;

/// A value of TensorProto.DataType: its element type here, and the field of elements that are not in
/// raw_data.
struct DataType {
  std::uint64_t code;
  Dtype dtype;
  Field field;
};
constexpr DataType data_types[] = {
    {1, Dtype::F32, float_data},          {2, Dtype::U8, int32_data},
    {3, Dtype::I8, int32_data},           {4, Dtype::U16, int32_data},
    {5, Dtype::I16, int32_data},          {6, Dtype::I32, int32_data},
    {7, Dtype::I64, int64_data},          {9, Dtype::BOOL, int32_data},
    {10, Dtype::F16, int32_data},         {11, Dtype::F64, double_data},
    {12, Dtype::U32, uint64_data},        {13, Dtype::U64, uint64_data},
    {16, Dtype::BF16, int32_data},        {17, Dtype::F8_E4M3, int32_data},
    {18, Dtype::F8_E4M3FNUZ, int32_data}, {19, Dtype::F8_E5M2, int32_data},
    {20, Dtype::F8_E5M2FNUZ, int32_data}, {24, Dtype::F8_E8M0, int32_data},
};

std::string describe_type(std::uint64_t code) {
  const std::pair<std::uint64_t, std::string_view> known[] = {
      {14, "COMPLEX64"}, {15, "COMPLEX128"}, {21, "UINT4"}, {22, "INT4"}, {23, "FLOAT4E2M1"}};
  for (const auto& [number, name] : known) {
    if (number == code) return fmt::format("{} ({})", code, name);
  }
  return std::to_string(code);
}

/// One TensorProto; elements are collected in a second pass, when their number and type are known.
class TensorProto {
 public:
  TensorProto(const StoredBytes& message, Arena& arena, const std::string& where,
              const OpenExternal& external)
      : message_(message), arena_(arena), where_(where), external_(external) {}

  std::optional<Tensor> read(std::string_view name) {
    scan();
    if (!name.empty()) name_ = name;
    if (name_.empty()) fail(ErrorCode::Format, "a tensor has no name");
    if (type_ == string_type) return std::nullopt;
    if (is_external_ && !external_) {
      fail(ErrorCode::Unsupported,
           fmt::format("tensor {} has its data in another file, expected it in this one", quote(name_)));
    }
    const auto* type = std::find_if(std::begin(data_types), std::end(data_types),
                                    [this](const DataType& known) { return known.code == type_; });
    if (type == std::end(data_types)) {
      fail(ErrorCode::Unsupported, fmt::format("tensor {} has data type {}, which is not supported",
                                               quote(name_), describe_type(type_)));
    }
    const std::span<std::uint64_t> shape = arena_.allocate<std::uint64_t>(shape_.size());
    std::copy(shape_.begin(), shape_.end(), shape.begin());
    Tensor tensor{name_, type->dtype, shape, {}};
    if (is_external_) {
      tensor.bytes = external_elements();
    } else if (raw_) {
      tensor.bytes = *raw_;
    } else {
      tensor.bytes = type->field == float_data || type->field == double_data ? fixed_elements(*type)
                                                                             : varint_elements(*type);
    }
    check_tensor_size(tensor, where_);
    return tensor;
  }

 private:
  void scan() {
    StoredWireReader reader = this->reader();
    while (const std::optional<StoredField> field = reader.next()) {
      switch (field->number) {
        case dims: reader.integers(*field, [this](std::uint64_t extent) { add_extent(extent); }); break;
        case data_type: type_ = reader.integer(*field); break;
        case segment: fail(ErrorCode::Unsupported, "a tensor is stored in segments, which are not supported");
        case name_field: name_ = kept_text(reader.bytes(*field)); break;
        case external_data: read_place(arena_.keep(reader.bytes(*field))); break;
        case raw_data: raw_ = reader.bytes(*field); break;
        case data_location: is_external_ = reader.integer(*field) == 1; break;
        default: break;
      }
    }
  }

  /// An entry of external_data: "location", "offset" or "length".
  void read_place(Bytes entry) {
    std::string_view key;
    std::string_view value;
    WireReader reader(entry, "StringStringEntryProto", where_);
    while (const std::optional<WireField> field = reader.next()) {
      if (field->number == 1) key = reader.text(*field);
      if (field->number == 2) value = reader.text(*field);
    }
    if (key == "location") location_ = value;
    if (key == "offset") offset_ = place_number(key, value);
    if (key == "length") length_ = place_number(key, value);
  }

  std::uint64_t place_number(std::string_view key, std::string_view digits) const {
    const bool is_number = !digits.empty() && digits.size() <= 18 &&
                           digits.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_number) {
      fail(ErrorCode::Format,
           fmt::format("the {} of a tensor in another file is {}, expected a number", key, quote(digits)));
    }
    return std::stoull(std::string(digits));
  }

  StoredBytes external_elements() const {
    const std::string quoted = quote(name_);
    if (location_.empty() || location_ == "." || location_ == ".." ||
        location_.find_first_of(std::string_view("/\\:\0", 4)) != std::string_view::npos) {
      fail(ErrorCode::Format, fmt::format("tensor {} is in {}, expected a file name in the model's folder",
                                          quoted, quote(location_)));
    }
    arena_.charge(1, external_entry_bytes + location_.size());
    const StoredBytes file = external_(name_, std::string(location_));
    const std::uint64_t left = file.size() - std::min(offset_, file.size());
    const std::uint64_t length = length_.value_or(left);
    if (offset_ > file.size() || length > left) {
      fail(ErrorCode::Format, fmt::format("tensor {} ends at byte {} of {}, which has {}", quoted,
                                          offset_ + length, quote(location_), file.size()));
    }
    return file.part(offset_, length);
  }

  void add_extent(std::uint64_t extent) {
    if (extent > std::numeric_limits<std::int64_t>::max()) {
      fail(ErrorCode::Format, fmt::format("tensor {} has a dimension of {}, expected 0 or more", quote(name_),
                                          static_cast<std::int64_t>(extent)));
    }
    if (shape_.size() == most_axes) {
      fail(ErrorCode::Unsupported, fmt::format("a tensor has more than {} axes", most_axes));
    }
    shape_.push_back(extent);
  }

  [[nodiscard]] std::string_view kept_text(const StoredBytes& stored) const {
    const Bytes text = arena_.keep(stored);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  template <typename Take>
  void each(Field number, const Take& take) const {
    StoredWireReader reader = this->reader();
    while (const std::optional<StoredField> field = reader.next()) {
      if (field->number == number) take(reader, *field);
    }
  }

  /// float_data or double_data: usually one packed run, used in place.
  StoredBytes fixed_elements(const DataType& type) const {
    const WireType single = type.field == float_data ? WireType::fixed32 : WireType::fixed64;
    std::uint64_t total = 0;
    StoredBytes last;
    each(type.field, [&](const StoredWireReader& reader, const StoredField& field) {
      last = field.type == single ? field.bytes : reader.bytes(field);
      total += last.size();
    });
    if (total == last.size()) return last;
    const std::span<std::byte> elements = arena_.allocate<std::byte>(total);
    std::size_t at = 0;
    each(type.field, [&](const StoredWireReader&, const StoredField& field) {
      const auto size = static_cast<std::size_t>(field.bytes.size());
      field.bytes.copy_to(elements.subspan(at, size));
      at += size;
    });
    return std::as_bytes(elements);
  }

  Bytes varint_elements(const DataType& type) const {
    const std::size_t width = bits(type.dtype) / 8;
    std::uint64_t count = 0;
    each(type.field, [&](const StoredWireReader& reader, const StoredField& field) {
      reader.integers(field, [&count](std::uint64_t) { ++count; });
    });
    const std::span<std::byte> elements = arena_.allocate<std::byte>(count * width);
    std::size_t at = 0;
    each(type.field, [&](const StoredWireReader& reader, const StoredField& field) {
      // The lower bytes hold the element, also if a negative one was sign-extended to 64 bits.
      reader.integers(field, [&](std::uint64_t value) {
        std::memcpy(&elements[at], &value, width);
        at += width;
      });
    });
    return elements;
  }

  [[nodiscard]] StoredWireReader reader() const { return {message_, "TensorProto", where_}; }
  [[noreturn]] void fail(ErrorCode code, const std::string& what) const {
    throw Error(code, where_ + ": " + what);
  }

  StoredBytes message_;
  Arena& arena_;
  const std::string& where_;
  std::string_view name_;
  std::uint64_t type_ = 0;
  std::vector<std::uint64_t> shape_;
  std::optional<StoredBytes> raw_;
  bool is_external_ = false;
  std::string_view location_;
  std::uint64_t offset_ = 0;
  std::optional<std::uint64_t> length_;
  const OpenExternal& external_;
};

}  // namespace

std::optional<Tensor> read_onnx_tensor(const StoredBytes& message, std::string_view name, Arena& arena,
                                       const std::string& where, const OpenExternal& external) {
  return TensorProto(message, arena, where, external).read(name);
}

}  // namespace normscope::files
