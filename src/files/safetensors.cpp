#include <normscope/files/safetensors.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>

#include "file_format.hpp"
#include "json_events.hpp"
#include "parsed_file.hpp"
#include "shard.hpp"

namespace normscope::files {
namespace {

/// Amounts of memory that a header's tensors and metadata need.
struct HeaderSizes {
  std::size_t tensors = 0;
  std::size_t extents = 0;
  std::size_t escaped_bytes = 0;   ///< an upper bound
  std::size_t metadata_bytes = 0;  ///< an upper estimate, including containers

  [[nodiscard]] std::size_t memory() const {
    return tensors * sizeof(Tensor) + extents * sizeof(std::uint64_t) + escaped_bytes + metadata_bytes;
  }
};

/// Reads the JSON object of a safetensors header and checks each tensor separately: fields, dtype, shape, and
/// that its offsets enclose shape × dtype bytes within the data. The caller checks gaps, overlaps and
/// duplicate names. Runs twice over an untrusted header: first to measure, then to fill memory of the
/// measured size.
class SafetensorsHeader : public JsonEvents {
 public:
  /// Only measures if `contents` is null; otherwise it must have the measured capacity.
  SafetensorsHeader(std::string_view text, const StoredBytes& data, const std::string& where,
                    std::size_t memory_limit, SafetensorsContents* contents)
      : JsonEvents(where), text_(text), data_(data), memory_limit_(memory_limit), contents_(contents) {}

  /// Errors    Format, Shape, Unsupported
  HeaderSizes read();

  bool start_object(std::size_t count) override;
  bool end_object() override;
  bool start_array(std::size_t count) override;
  bool end_array() override;
  bool key(std::string& text) override;
  bool string(std::string& text) override;
  bool number_unsigned(number_unsigned_t value) override;

 protected:
  [[nodiscard]] std::string misplaced(std::string_view found) const override;

 private:
  /// The element of the header that is expected next.
  enum class Expect {
    header,
    name,
    tensor,
    field,
    dtype,
    shape,
    extent,
    data_offsets,
    offset,
    metadata,
    metadata_key,
    metadata_value,
  };

  [[nodiscard]] std::string place() const;
  void begin_tensor();
  void begin_field(std::string_view field);
  void end_tensor();
  [[nodiscard]] std::string_view stored_name();
  void check_memory() const;

  std::string_view text_;
  StoredBytes data_;
  std::size_t memory_limit_;
  SafetensorsContents* contents_;
  std::size_t position_ = 0;
  HeaderSizes sizes_;

  Expect expect_ = Expect::header;
  bool seen_metadata_ = false;
  std::string name_;           ///< of the current tensor
  std::string_view raw_name_;  ///< as spelled in the header
  std::string metadata_key_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  Dtype dtype_ = Dtype::F32;
  std::uint64_t elements_ = 1;
  std::size_t rank_ = 0;
  bool overflows_ = false;
  std::uint64_t offsets_[2] = {0, 0};
  std::size_t offset_count_ = 0;
};

constexpr std::string_view metadata_name = "__metadata__";

HeaderSizes SafetensorsHeader::read() {
  parse_json(text_, *this, &position_);
  return sizes_;
}

std::string SafetensorsHeader::place() const {
  const auto field = [this](std::string_view name) {
    return fmt::format("{} of tensor {}", name, quote(name_));
  };
  switch (expect_) {
    case Expect::header:
    case Expect::name: return "header";
    case Expect::tensor:
    case Expect::field: return "tensor " + quote(name_);
    case Expect::dtype: return field("dtype");
    case Expect::shape:
    case Expect::extent: return field("shape");
    case Expect::data_offsets:
    case Expect::offset: return field("data_offsets");
    case Expect::metadata:
    case Expect::metadata_key: return "__metadata__";
    case Expect::metadata_value: return "__metadata__ entry " + quote(metadata_key_);
  }
  return "";
}

std::string SafetensorsHeader::misplaced(std::string_view found) const {
  const std::string_view expected = [this] {
    switch (expect_) {
      case Expect::dtype:
      case Expect::metadata_value: return "a string";
      case Expect::shape:
      case Expect::extent: return "an array of integers >= 0";
      case Expect::data_offsets:
      case Expect::offset: return "an array of two integers >= 0";
      case Expect::metadata:
      case Expect::metadata_key: return "an object of strings";
      case Expect::header:
      case Expect::name:
      case Expect::tensor:
      case Expect::field: break;
    }
    return "an object";
  }();
  return fmt::format("{} has {}, expected {}", place(), found, expected);
}

bool SafetensorsHeader::start_object(std::size_t /*count*/) {
  switch (expect_) {
    case Expect::header: expect_ = Expect::name; return true;
    case Expect::tensor: begin_tensor(); return true;
    case Expect::metadata: expect_ = Expect::metadata_key; return true;
    default: unexpected("an object");
  }
}

bool SafetensorsHeader::end_object() {
  if (expect_ == Expect::field) end_tensor();
  expect_ = expect_ == Expect::name ? Expect::header : Expect::name;
  return true;
}

bool SafetensorsHeader::key(std::string& text) {
  switch (expect_) {
    case Expect::name:
      if (text == metadata_name) {
        if (seen_metadata_) fail(ErrorCode::Format, "header has __metadata__ twice");
        seen_metadata_ = true;
        expect_ = Expect::metadata;
      } else {
        name_ = text;
        // The parser has just read the closing quote. If the bytes equal the decoded name, they can be used
        // in place.
        const std::size_t end = position_ - 1;
        raw_name_ = text_.substr(end - std::min(end, name_.size()), name_.size());
        expect_ = Expect::tensor;
      }
      return true;
    case Expect::field: begin_field(text); return true;
    case Expect::metadata_key:
      metadata_key_ = text;
      expect_ = Expect::metadata_value;
      return true;
    default: return true;  // a key only occurs where one is expected
  }
}

void SafetensorsHeader::begin_tensor() {
  expect_ = Expect::field;
  has_dtype_ = has_shape_ = has_offsets_ = false;
}

void SafetensorsHeader::begin_field(std::string_view field) {
  bool* seen = nullptr;
  if (field == "dtype") {
    seen = &has_dtype_;
    expect_ = Expect::dtype;
  } else if (field == "shape") {
    seen = &has_shape_;
    expect_ = Expect::shape;
  } else if (field == "data_offsets") {
    seen = &has_offsets_;
    expect_ = Expect::data_offsets;
  } else {
    fail(ErrorCode::Format,
         fmt::format("{} has the key {}, expected dtype, shape and data_offsets", place(), quote(field)));
  }
  if (*seen) fail(ErrorCode::Format, fmt::format("tensor {} has {} twice", quote(name_), field));
  *seen = true;
}

bool SafetensorsHeader::string(std::string& text) {
  if (expect_ == Expect::dtype) {
    const std::optional<Dtype> found = normscope::dtype(text);
    if (!found) {
      fail(ErrorCode::Format,
           fmt::format("{} is {}, expected a dtype of the format such as F32", place(), quote(text)));
    }
    dtype_ = *found;
    expect_ = Expect::field;
    return true;
  }
  if (expect_ != Expect::metadata_value) unexpected(quote(text));
  expect_ = Expect::metadata_key;
  sizes_.metadata_bytes += metadata_entry_bytes + metadata_key_.size() + text.size();
  if (contents_ == nullptr) {
    check_memory();
  } else if (!contents_->metadata.emplace(metadata_key_, text).second) {
    fail(ErrorCode::Format, fmt::format("__metadata__ has the key {} twice", quote(metadata_key_)));
  }
  return true;
}

bool SafetensorsHeader::start_array(std::size_t /*count*/) {
  if (expect_ == Expect::shape) {
    expect_ = Expect::extent;
    elements_ = 1;
    rank_ = 0;
    overflows_ = false;
  } else if (expect_ == Expect::data_offsets) {
    expect_ = Expect::offset;
    offset_count_ = 0;
  } else {
    unexpected("an array");
  }
  return true;
}

bool SafetensorsHeader::number_unsigned(number_unsigned_t value) {
  if (expect_ == Expect::extent) {
    overflows_ |= __builtin_mul_overflow(elements_, value, &elements_);
    ++rank_;
    if (contents_ != nullptr) {
      contents_->extents.push_back(value);
    } else {
      ++sizes_.extents;
      check_memory();
    }
    return true;
  }
  if (expect_ != Expect::offset) unexpected(std::to_string(value));
  if (offset_count_ == 2)
    fail(ErrorCode::Format, place() + " has more than two numbers, expected [begin, end]");
  offsets_[offset_count_++] = value;
  return true;
}

bool SafetensorsHeader::end_array() {
  if (expect_ == Expect::offset && offset_count_ != 2) {
    fail(ErrorCode::Format, fmt::format("{} has length {}, expected [begin, end]", place(), offset_count_));
  }
  expect_ = Expect::field;
  return true;
}

void SafetensorsHeader::end_tensor() {
  const auto require = [this](bool present, std::string_view field) {
    if (!present) fail(ErrorCode::Format, fmt::format("{} has no {}", place(), field));
  };
  require(has_dtype_, "dtype");
  require(has_shape_, "shape");
  require(has_offsets_, "data_offsets");

  const auto [begin, end] = offsets_;
  if (begin > end) {
    fail(ErrorCode::Format, fmt::format("{} begins at byte {} and ends at byte {}", place(), begin, end));
  }
  if (end > data_.size()) {
    fail(ErrorCode::Format, fmt::format("{} ends at byte {}, data has {}", place(), end, data_.size()));
  }
  std::uint64_t size_bits = 0;
  if (overflows_ || __builtin_mul_overflow(elements_, bits(dtype_), &size_bits)) {
    fail(ErrorCode::Shape, fmt::format("size of {} overflows 64 bits", place()));
  }
  if (size_bits % 8 != 0) {
    fail(ErrorCode::Shape, fmt::format("{} has {} elements of {}, which do not end on a byte", place(),
                                       elements_, to_string(dtype_)));
  }
  if (end - begin != size_bits / 8) {
    fail(ErrorCode::Shape, fmt::format("{} has {} bytes, expected {} for {} elements of {}", place(),
                                       end - begin, size_bits / 8, elements_, to_string(dtype_)));
  }

  const std::string_view name = stored_name();
  if (contents_ != nullptr) {
    const std::span<const std::uint64_t> extents(contents_->extents);
    contents_->tensors.push_back({name, dtype_, extents.last(rank_), data_.part(begin, end - begin)});
  } else {
    ++sizes_.tensors;
    check_memory();
  }
}

std::string_view SafetensorsHeader::stored_name() {
  if (raw_name_ == name_) return raw_name_;
  if (contents_ == nullptr) {
    sizes_.escaped_bytes += name_.size();
    return {};
  }
  std::vector<char>& names = contents_->escaped_names;
  NORMSCOPE_ASSERT(names.capacity() - names.size() >= name_.size());
  names.insert(names.end(), name_.begin(), name_.end());
  return {names.data() + names.size() - name_.size(), name_.size()};
}

void SafetensorsHeader::check_memory() const {
  if (sizes_.memory() > memory_limit_) {
    fail(ErrorCode::Unsupported,
         fmt::format("the list of tensors in the header needs more than {} bytes of memory", memory_limit_));
  }
}

constexpr std::size_t length_bytes = 8;
// The JSON library holds several copies of the token that it reads, so the token's length is limited first.
constexpr std::size_t longest_string = std::size_t{4} << 20;
constexpr std::size_t longest_run = std::size_t{64} << 10;

struct Parts {
  std::string_view header;  ///< without white space around it
  StoredBytes data;
};

/// `buffer` receives the header of a file that is not in memory.
Parts split(const StoredBytes& file, const std::string& where, std::vector<std::byte>& buffer) {
  const auto reject = [&where](const std::string& what) { fail(ErrorCode::Format, where, what); };
  if (file.size() < length_bytes) {
    reject(fmt::format("file has {} bytes, expected at least {}", file.size(), length_bytes));
  }
  const auto length = load<std::uint64_t>(file.part(0, length_bytes).fetch(buffer));
  if (length > longest_safetensors_header) {
    reject(fmt::format("header length is {}, expected at most {}", length, longest_safetensors_header));
  }
  if (length > file.size() - length_bytes) {
    reject(fmt::format("header ends at byte {}, file has {}", length_bytes + length, file.size()));
  }
  const std::span<const std::byte> bytes = file.part(length_bytes, length).fetch(buffer);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.empty()) reject("header is empty, expected a JSON object");
  // The reference implementation writes spaces behind the object, and reads any white space of JSON around
  // it.
  constexpr std::string_view white = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(white), text.size() - 1);
  const std::string_view object = text.substr(begin, text.find_last_not_of(white) + 1 - begin);
  if (object.empty() || object.front() != '{') {
    reject(fmt::format("header begins with byte 0x{:02x}, expected '{{'",
                       static_cast<unsigned char>(text[begin])));
  }
  if (object.back() != '}') {
    reject(fmt::format("header ends with byte 0x{:02x}, expected '}}' and then only white space",
                       static_cast<unsigned char>(object.back())));
  }
  const std::uint64_t data_begin = length_bytes + length;
  return {object, file.part(data_begin, file.size() - data_begin)};
}

void bound_tokens(std::string_view text, const std::string& where) {
  bool in_string = false;
  std::size_t begin = 0;  // start of the string, or of the text after the last string or comma
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i - begin >= (in_string ? longest_string : longest_run)) {
      fail(ErrorCode::Unsupported, where,
           in_string
               ? fmt::format("header has a string of more than {} bytes at byte {}", longest_string, begin)
               : fmt::format("header has more than {} bytes without a string or comma at byte {}",
                             longest_run, begin));
    }
    if (c == '"') {
      in_string = !in_string;
      begin = i;
    } else if (in_string && c == '\\') {
      ++i;
    } else if (!in_string && c == ',') {
      begin = i;
    }
  }
}

/// Tensors must fill the data without gaps or overlaps.
void check_layout(const std::vector<Tensor>& tensors, const StoredBytes& data, const std::string& where) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const StoredBytes& left = tensors[a].bytes;
    const StoredBytes& right = tensors[b].bytes;
    const std::uint64_t left_begin = left.offset_in(data);
    const std::uint64_t right_begin = right.offset_in(data);
    return left_begin != right_begin ? left_begin < right_begin : left.size() < right.size();
  });
  std::uint64_t filled = 0;
  for (const std::uint32_t index : order) {
    const Tensor& tensor = tensors[index];
    const std::uint64_t begin = tensor.bytes.offset_in(data);
    if (begin != filled) {
      fail(ErrorCode::Format, where,
           fmt::format("tensor {} begins at byte {}, expected {}, where the one before ends ({})",
                       quote(tensor.name), begin, filled, begin < filled ? "overlap" : "hole"));
    }
    filled = begin + tensor.bytes.size();
  }
  if (filled != data.size()) {
    fail(ErrorCode::Format, where, fmt::format("tensors end at byte {}, data has {}", filled, data.size()));
  }
}

}  // namespace

SafetensorsContents parse_safetensors(const StoredBytes& file, const std::string& where) {
  SafetensorsContents contents;
  const auto [header, data] = split(file, where, contents.header);
  bound_tokens(header, where);

  const auto memory_limit =
      static_cast<std::size_t>(std::min(file.size(), largest_held)) + memory_beyond_file;
  const HeaderSizes sizes = SafetensorsHeader(header, data, where, memory_limit, nullptr).read();
  contents.tensors.reserve(sizes.tensors);
  contents.extents.reserve(sizes.extents);
  contents.escaped_names.reserve(sizes.escaped_bytes);
  SafetensorsHeader(header, data, where, memory_limit, &contents).read();

  sort_tensors(contents.tensors, where + ": header");
  check_layout(contents.tensors, data, where);
  return contents;
}

namespace formats {

extern const FileFormat safetensors{
    .name = "safetensors",
    .begins =
        [](std::string_view text) {
          using namespace std::string_view_literals;
          return text.size() >= 9 && text.substr(4, 5) == "\0\0\0\0{"sv;
        },
    .named = [](const std::filesystem::path& path) { return has_extension(path, {".safetensors"}); },
    .open =
        [](ShardRequest request) {
          SafetensorsContents contents =
              parse_safetensors(StoredBytes(*request.file), "safetensors: " + request.path.string());
          return Shard{std::move(request.file), std::move(contents)};
        },
    .by_tensor = true};

}  // namespace formats

}  // namespace normscope::files
