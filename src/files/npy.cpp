#include "npy.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/array.hpp>
#include <normscope/files/source.hpp>
#include "file_format.hpp"
#include "parsed_file.hpp"

namespace normscope::files {

Dtype npy_dtype(Dtype dtype) {
  if (dtype == Dtype::BF16) return Dtype::F32;
  return dtype == Dtype::F32 || dtype == Dtype::F16 ? dtype : Dtype::F64;
}

NpyWriter::NpyWriter(const std::filesystem::path& path, Dtype dtype, std::span<const std::uint64_t> shape)
    : file_(path), missing_(element_count(shape).value_or(0) * (bits(dtype) / 8)) {
  file_.write(npy_preamble(dtype, shape));
}

void NpyWriter::write(std::span<const std::byte> elements) {
  NORMSCOPE_ASSERT(elements.size() <= missing_);
  missing_ -= elements.size();
  file_.write(elements);
}

void NpyWriter::commit() {
  NORMSCOPE_ASSERT(missing_ == 0);
  file_.commit();
}

void write_npy(const std::filesystem::path& path, const Array& array) {
  const std::optional<std::uint64_t> elements = element_count(array.shape);
  if (elements != array.values.size()) {
    throw Error(
        ErrorCode::Shape,
        fmt::format("write_npy: {}: the shape has {} elements, expected {}, the number of values",
                    path.string(), elements ? std::to_string(*elements) : "too many", array.values.size()));
  }
  const Dtype dtype = npy_dtype(array.dtype);
  const std::size_t width = bits(dtype) / 8;
  constexpr std::size_t step = 8192;
  std::array<std::byte, step * sizeof(double)> buffer;
  NpyWriter file(path, dtype, array.shape);
  for (std::size_t begin = 0; begin < array.values.size(); begin += step) {
    const std::size_t count = std::min(step, array.values.size() - begin);
    const std::span<std::byte> bytes(buffer.data(), count * width);
    encode(dtype, std::span(array.values).subspan(begin, count), bytes);
    file.write(bytes);
  }
  file.commit();
}

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t longest_npy_header = std::size_t{1} << 20;

/// Parses the few Python literals in a header.
class Literals {
 public:
  Literals(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(ErrorCode::Format, fmt::format("{}: header at byte {}: expected {}", where_, at_, expected));
  }

  [[nodiscard]] bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  /// Consumes `c` if it comes next, and returns whether it did.
  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void require(char c) {
    if (!take(c)) fail(fmt::format("'{}'", c));
  }
  std::string_view string() {
    const char quotation = take('\'') ? '\'' : '"';
    if (quotation == '"') require('"');
    const std::size_t end = text_.find(quotation, at_);
    if (end == std::string_view::npos) fail("the end of a string");
    const std::size_t begin = std::exchange(at_, end + 1);
    return text_.substr(begin, end - begin);
  }
  bool boolean() {
    skip_blanks();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    }
    fail("True or False");
  }
  std::uint64_t integer() {
    skip_blanks();
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10u, &value) ||
          __builtin_add_overflow(value, static_cast<unsigned>(text_[at_] - '0'), &value)) {
        fail("an integer of 64 bits");
      }
    }
    if (at_ == begin) fail("an integer >= 0");
    take('L');  // Python 2 wrote long integers with this suffix
    return value;
  }
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> items;
    require('(');
    while (!take(')')) {
      items.push_back(integer());
      if (!take(',')) {
        if (items.size() == 1) fail("','");
        require(')');
        break;
      }
    }
    return items;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

struct NumpyType {
  std::string_view code;
  Dtype dtype;
};
constexpr NumpyType numpy_types[] = {
    {"f8", Dtype::F64}, {"f4", Dtype::F32}, {"f2", Dtype::F16}, {"i8", Dtype::I64},
    {"i4", Dtype::I32}, {"i2", Dtype::I16}, {"i1", Dtype::I8},  {"u8", Dtype::U64},
    {"u4", Dtype::U32}, {"u2", Dtype::U16}, {"u1", Dtype::U8},  {"b1", Dtype::BOOL},
};

void set_type(NpyHeader& header, std::string_view descr, const std::string& where) {
  const std::string_view code = descr.empty() ? descr : descr.substr(1);
  const bool has_order = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  for (const NumpyType& type : numpy_types) {
    if (has_order && type.code == code) {
      header.dtype = type.dtype;
      header.big_endian = descr[0] == '>';
      return;
    }
  }
  throw Error(ErrorCode::Unsupported,
              fmt::format("{}: dtype is {}, expected floats of 2, 4 or 8 bytes, integers or bool", where,
                          quote(descr)));
}

/// Converts column-major elements of `width` bytes to row-major.
std::vector<std::byte> from_fortran(std::span<const std::byte> data, std::size_t width,
                                    const std::vector<std::uint64_t>& shape) {
  std::vector<std::byte> result(data.size());
  std::vector<std::uint64_t> index(shape.size(), 0);
  for (std::size_t at = 0; at < result.size(); at += width) {
    std::uint64_t position = 0;
    for (std::size_t axis = shape.size(); axis-- > 0;) position = position * shape[axis] + index[axis];
    std::memcpy(&result[at], &data[position * width], width);
    for (std::size_t axis = shape.size(); axis-- > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
  }
  return result;
}

void swap_bytes(std::vector<std::byte>& data, std::size_t width) {
  for (auto element = data.begin(); element != data.end(); element += static_cast<std::ptrdiff_t>(width)) {
    std::reverse(element, element + static_cast<std::ptrdiff_t>(width));
  }
}

}  // namespace

std::size_t npy_data_begin(std::span<const std::byte> prefix, const std::string& where) {
  const auto fail = [&where](const std::string& what) {
    throw Error(ErrorCode::Format, where + ": " + what);
  };
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  if (text.substr(0, magic.size()) != magic) fail("does not begin with the magic of a .npy file");
  if (prefix.size() < npy_prefix) fail(fmt::format("has {} bytes, too few for a .npy header", prefix.size()));
  const auto byte_at = [prefix](std::size_t index) { return std::to_integer<std::size_t>(prefix[index]); };
  const std::size_t major = byte_at(6);
  if (major < 1 || major > 3 || byte_at(7) != 0) {
    fail(fmt::format(".npy version is {}.{}, expected 1.0, 2.0 or 3.0", major, byte_at(7)));
  }
  const std::size_t short_length = byte_at(8) | byte_at(9) << 8;
  const std::size_t length = major == 1 ? short_length : short_length | byte_at(10) << 16 | byte_at(11) << 24;
  if (length < 2 || length > longest_npy_header) {
    fail(fmt::format(".npy header has {} bytes, expected from 2 to {}", length, longest_npy_header));
  }
  return (major == 1 ? 10 : 12) + length;
}

NpyHeader parse_npy_header(std::span<const std::byte> before_data, const std::string& where) {
  const std::size_t begin = before_data[6] == std::byte{1} ? 10 : 12;
  const std::string_view text(reinterpret_cast<const char*>(before_data.data()) + begin,
                              before_data.size() - begin);
  Literals literals(text, where);
  NpyHeader header;
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  literals.require('{');
  while (!literals.take('}')) {
    const std::string_view key = literals.string();
    bool* seen = key == "descr"           ? &has_descr
                 : key == "fortran_order" ? &has_order
                 : key == "shape"         ? &has_shape
                                          : nullptr;
    if (seen == nullptr || *seen) literals.fail("each of the keys descr, fortran_order and shape once");
    *seen = true;
    literals.require(':');
    if (seen == &has_descr) {
      if (literals.take('['))
        throw Error(ErrorCode::Unsupported, where + ": dtype is structured, expected plain numbers");
      set_type(header, literals.string(), where);
    } else if (seen == &has_order) {
      header.fortran_order = literals.boolean();
    } else {
      header.shape = literals.tuple();
    }
    if (!literals.take(',')) {
      literals.require('}');
      break;
    }
  }
  if (!(has_descr && has_order && has_shape)) literals.fail("the keys descr, fortran_order and shape");
  if (!literals.at_end()) literals.fail("the end of the header");

  const std::optional<std::uint64_t> elements = element_count(header.shape);
  std::uint64_t decoded = 0;
  if (!elements || __builtin_mul_overflow(*elements, sizeof(double), &decoded)) {
    throw Error(ErrorCode::Shape, where + ": size of the array overflows 64 bits");
  }
  header.elements = *elements;
  return header;
}

void check_data_size(const NpyHeader& header, std::uint64_t size, const std::string& where) {
  if (size == header.data_bytes()) return;
  throw Error(ErrorCode::Format,
              fmt::format("{}: has {} bytes of data, expected {} for {} elements of {}", where, size,
                          header.data_bytes(), header.elements, to_string(header.dtype)));
}

std::span<const std::byte> npy_elements(const NpyHeader& header, std::span<const std::byte> data,
                                        std::vector<std::byte>& buffer) {
  NORMSCOPE_ASSERT(data.size() == header.data_bytes());
  const std::size_t width = bits(header.dtype) / 8;
  const bool transpose = header.fortran_order && header.shape.size() > 1;
  const bool swap = header.big_endian && width > 1;
  if (!transpose && !swap) return data;
  buffer = transpose ? from_fortran(data, width, header.shape) : std::vector(data.begin(), data.end());
  if (swap) swap_bytes(buffer, width);
  return buffer;
}

NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& where) {
  const std::size_t begin = npy_data_begin(bytes.first(std::min(bytes.size(), npy_prefix)), where);
  if (begin > bytes.size()) {
    throw Error(ErrorCode::Format,
                fmt::format("{}: header ends at byte {}, file has {}", where, begin, bytes.size()));
  }
  NpyHeader header = parse_npy_header(bytes.first(begin), where);
  const std::span<const std::byte> data = bytes.subspan(begin);
  check_data_size(header, data.size(), where);
  return {std::move(header), data};
}

std::string npy_preamble(Dtype dtype, std::span<const std::uint64_t> shape) {
  const auto* type = std::find_if(std::begin(numpy_types), std::end(numpy_types),
                                  [dtype](const NumpyType& candidate) { return candidate.dtype == dtype; });
  NORMSCOPE_ASSERT(type != std::end(numpy_types));
  std::string extents;
  for (const std::uint64_t extent : shape)
    extents += fmt::format("{}{}", extents.empty() ? "" : ", ", extent);
  if (shape.size() == 1) extents += ',';
  std::string dict =
      fmt::format("{{'descr': '<{}', 'fortran_order': False, 'shape': ({}), }}", type->code, extents);

  const bool is_long = dict.size() + 64 > 0xffff;
  const std::size_t fixed = is_long ? 12 : 10;
  const std::size_t total = (fixed + dict.size() + 1 + 63) / 64 * 64;
  dict.resize(total - fixed - 1, ' ');
  dict += '\n';
  std::string preamble(magic);
  preamble += is_long ? '\2' : '\1';
  preamble += '\0';
  for (std::size_t i = 0; i < fixed - 8; ++i) preamble += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  return preamble + dict;
}

namespace formats {

extern const FileFormat npy{
    .name = "NumPy array",
    .begins = [](std::string_view text) { return text.starts_with("\x93NUMPY"); },
    .named = [](const std::filesystem::path& path) { return has_extension(path, {".npy"}); }};

}  // namespace formats

}  // namespace normscope::files
