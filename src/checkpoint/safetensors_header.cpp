#include "safetensors_header.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/core.h>

#include <normscope/bytes/quote.hpp>
#include <normscope/core/assert.hpp>
#include <normscope/core/error.hpp>

#include "parsed_file.hpp"

namespace normscope::checkpoint {
namespace {

constexpr std::string_view metadata_name = "__metadata__";

}  // namespace

HeaderSizes SafetensorsHeader::read() {
  parse_json(text_, *this, &position_);
  return sizes_;
}

std::string SafetensorsHeader::place() const {
  const auto field = [this](std::string_view name) {
    return fmt::format("{} of tensor {}", name, bytes::quote(name_));
  };
  switch (expect_) {
    case Expect::header:
    case Expect::name: return "header";
    case Expect::tensor:
    case Expect::field: return "tensor " + bytes::quote(name_);
    case Expect::dtype: return field("dtype");
    case Expect::shape:
    case Expect::extent: return field("shape");
    case Expect::data_offsets:
    case Expect::offset: return field("data_offsets");
    case Expect::metadata:
    case Expect::metadata_key: return "__metadata__";
    case Expect::metadata_value: return "__metadata__ entry " + bytes::quote(metadata_key_);
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
    fail(ErrorCode::Format, fmt::format("{} has the key {}, expected dtype, shape and data_offsets", place(),
                                        bytes::quote(field)));
  }
  if (*seen) fail(ErrorCode::Format, fmt::format("tensor {} has {} twice", bytes::quote(name_), field));
  *seen = true;
}

bool SafetensorsHeader::string(std::string& text) {
  if (expect_ == Expect::dtype) {
    const std::optional<Dtype> found = normscope::dtype(text);
    if (!found) {
      fail(ErrorCode::Format,
           fmt::format("{} is {}, expected a dtype of the format such as F32", place(), bytes::quote(text)));
    }
    dtype_ = *found;
    expect_ = Expect::field;
    return true;
  }
  if (expect_ != Expect::metadata_value) unexpected(bytes::quote(text));
  expect_ = Expect::metadata_key;
  sizes_.metadata_bytes += metadata_entry_bytes + metadata_key_.size() + text.size();
  if (contents_ == nullptr) {
    check_memory();
  } else if (!contents_->metadata.emplace(metadata_key_, text).second) {
    fail(ErrorCode::Format, fmt::format("__metadata__ has the key {} twice", bytes::quote(metadata_key_)));
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

}  // namespace normscope::checkpoint
