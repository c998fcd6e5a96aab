#include <normscope/checkpoint/array.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/assert.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

#include "encoded.hpp"
#include "file_format.hpp"
#include "idx_elements.hpp"
#include "npy.hpp"
#include "npz.hpp"
#include "quote.hpp"
#include "shape.hpp"
#include "torch_zip.hpp"
#include "written_array.hpp"
#include "zip.hpp"

namespace normscope::checkpoint {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

/// FILE or FILE:MEMBER.
struct ArrayName {
  fs::path file;
  std::optional<std::string> member;
};

/// Both parts may contain colons: the file is the longest prefix that exists; empty if there is none.
std::optional<ArrayName> find_name(const std::string& name) {
  std::error_code ignored;  // a name that is too long for a path does not exist
  if (fs::exists(name, ignored)) return ArrayName{name, std::nullopt};
  for (std::size_t colon = name.rfind(':'); colon != std::string::npos && colon > 0;
       colon = name.rfind(':', colon - 1)) {
    const std::string file = name.substr(0, colon);
    if (fs::exists(file, ignored)) return ArrayName{file, name.substr(colon + 1)};
  }
  return std::nullopt;
}

[[noreturn]] void fail_missing(const std::string& name) {
  throw Error(
      ErrorCode::Io,
      fmt::format("array: {}: no such file{}", name,
                  is_one_number(name)
                      ? "; a literal array has two or more finite numbers: 1,2 is one row, 0;1 is two rows"
                      : ""));
}

/// "3 tensors: "a", "b", ..." for a message.
template <typename Items>
std::string list_names(const Items& items, std::string_view what) {
  constexpr std::size_t most = 6;
  std::string list = fmt::format("it has {} {}{}", items.size(), what, items.empty() ? "" : ": ");
  for (std::size_t i = 0; i < std::min(items.size(), most); ++i) {
    list += (i > 0 ? ", " : "") + quote(items[i].name);
  }
  return items.size() > most ? list + ", ..." : list;
}

[[noreturn]] void fail_name(const fs::path& file, const std::optional<std::string>& member,
                            const std::string& list) {
  const std::string complaint = member ? fmt::format("has no {}", quote(*member))
                                       : std::string("holds named arrays, expected FILE:NAME");
  throw Error(ErrorCode::Argument, fmt::format("array: {}: {}; {}", file.string(), complaint, list));
}

struct Slice {
  std::string_view tensor;
  std::uint64_t index = 0;
};

/// TENSOR[i], if `name` has that form.
std::optional<Slice> parse_slice(std::string_view name) {
  const std::size_t open = name.rfind('[');
  if (open == std::string_view::npos || name.back() != ']') return std::nullopt;
  const std::string_view digits = name.substr(open + 1, name.size() - open - 2);
  if (digits.empty() || digits.size() > 18 ||
      digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  return Slice{name.substr(0, open), std::stoull(std::string(digits))};
}

const ZipMember& find_member(const std::vector<ZipMember>& members, const ArrayName& name) {
  if (name.member) {
    for (const std::string& spelling : {*name.member, *name.member + ".npy"}) {
      const auto found = std::find_if(members.begin(), members.end(), [&spelling](const ZipMember& member) {
        return member.name == spelling;
      });
      if (found != members.end()) return *found;
    }
  }
  fail_name(name.file, name.member, list_names(members, "members"));
}

/// A tensor, or one of its slices along the first axis.
struct TensorPart {
  const Tensor* tensor = nullptr;
  std::optional<std::uint64_t> slice{};
};

TensorPart find_tensor(const Checkpoint& checkpoint, const ArrayName& name) {
  if (name.member) {
    if (const Tensor* tensor = checkpoint.find(*name.member)) return {tensor};
    if (const std::optional<Slice> slice = parse_slice(*name.member)) {
      if (const Tensor* tensor = checkpoint.find(slice->tensor)) {
        if (!tensor->shape.empty() && slice->index < tensor->shape[0]) return {tensor, slice->index};
        throw Error(ErrorCode::Argument,
                    fmt::format("array: {}: no slice {} of tensor {}, which has {} along its first axis",
                                name.file.string(), slice->index, quote(tensor->name),
                                tensor->shape.empty() ? 0 : tensor->shape[0]));
      }
    }
  }
  fail_name(name.file, name.member, list_names(checkpoint.tensors(), "tensors"));
}

}  // namespace

/// Initializes an array from its name; one function per format.
struct OpenedArray::Opener {
  OpenedArray& array;
  const OpenCheckpoint& open;

  void name() const {
    const std::optional<ArrayName> found = find_name(array.name_);
    if (!found) return numbers();
    array.file_ = found->file;
    std::error_code ignored;
    if (fs::is_directory(found->file, ignored)) return tensor(*found);
    const auto file = std::make_shared<const MappedFile>(found->file);
    const FileFormat format = file_format(found->file, file->bytes());
    if (format == FileFormat::npy || format == FileFormat::idx) {
      if (found->member) {
        throw Error(ErrorCode::Argument,
                    fmt::format("array: {}: is a single array, expected no name after it, found {}",
                                found->file.string(), quote(*found->member)));
      }
      array.fills_file_ = true;
      return format == FileFormat::npy ? npy(file) : idx(file);
    }
    if (format == FileFormat::zip) {
      const std::string where = "npz: " + found->file.string();
      const std::vector<ZipMember> members = read_zip_directory(file->bytes(), where);
      if (!is_torch_zip(members)) return member(file, find_member(members, *found), where);
    }
    tensor(*found);
  }

  void numbers() const {
    const std::optional<Array> written = parse_written(array.name_);
    if (!written) fail_missing(array.name_);
    array.shape_ = written->shape;
    const auto bytes = std::make_shared<std::vector<std::byte>>(written->values.size() * sizeof(double));
    encode(Dtype::F64, written->values, *bytes);
    array.fetch_ = [bytes](std::vector<std::byte>&) { return Bytes(*bytes); };
  }

  void npy(const std::shared_ptr<const MappedFile>& file) const {
    const NpyArray found = parse_npy(file->bytes(), "npy: " + array.file_->string());
    take(found.header);
    array.fetch_ = [file, found](std::vector<std::byte>& buffer) {
      return npy_elements(found.header, found.data, buffer);
    };
  }

  void idx(const std::shared_ptr<const MappedFile>& file) const {
    auto found = std::make_shared<const IdxElements>(
        read_idx_elements(file->bytes(), "idx: " + array.file_->string()));
    array.shape_ = found->shape;
    array.dtype_ = found->dtype;
    array.fetch_ = [found](std::vector<std::byte>&) { return Bytes(found->bytes); };
  }

  void member(const std::shared_ptr<const MappedFile>& file, const ZipMember& found,
              const std::string& where) const {
    const NpyHeader header = read_npz_header(file->bytes(), found, where);
    take(header);
    array.fetch_ = [file, found, where, header](std::vector<std::byte>& buffer) {
      std::vector<std::byte> data = read_npz_data(file->bytes(), found, where);
      const Bytes elements = npy_elements(header, data, buffer);
      if (elements.data() == data.data()) buffer = std::move(data);
      return Bytes(buffer);
    };
  }

  void tensor(const ArrayName& name) const {
    array.checkpoint_ = open(name.file);
    const TensorPart part = find_tensor(*array.checkpoint_, name);
    const Tensor& tensor = *part.tensor;
    array.tensor_ = *name.member;
    array.dtype_ = tensor.dtype;
    array.shape_.assign(tensor.shape.begin() + (part.slice ? 1 : 0), tensor.shape.end());
    const std::uint64_t count = part.slice ? tensor.elements() / tensor.shape[0] : tensor.elements();
    const std::uint64_t first = part.slice ? *part.slice * count : 0;
    array.fetch_ = [owner = array.checkpoint_, found = part.tensor, first,
                    count](std::vector<std::byte>& buffer) {
      return encoded(*found, first, count).fetch(buffer);
    };
  }

  void take(const NpyHeader& header) const {
    array.shape_ = header.shape;
    array.dtype_ = header.dtype;
  }
};

std::shared_ptr<const Checkpoint> open_checkpoint(const fs::path& path) {
  return std::make_shared<const Checkpoint>(path);
}

OpenedArray::OpenedArray(std::string name, const OpenCheckpoint& open) : name_(std::move(name)) {
  Opener{*this, open}.name();
  elements_ = 1;
  // Every format has held the product against the bytes that are there.
  for (const std::uint64_t extent : shape_) elements_ *= extent;
}

std::span<const std::byte> OpenedArray::bytes(std::vector<std::byte>& buffer) const { return fetch_(buffer); }

std::vector<double> OpenedArray::values() const {
  std::vector<std::byte> buffer;
  const Bytes elements = bytes(buffer);
  std::vector<double> values(static_cast<std::size_t>(elements_));
  decode(dtype_, elements, values);
  return values;
}

std::vector<double> OpenedArray::row() const {
  const auto long_axes = std::count_if(shape_.begin(), shape_.end(), [](std::uint64_t n) { return n != 1; });
  if (long_axes > 1) {
    throw Error(ErrorCode::Shape,
                fmt::format("array: {}: has {} axes longer than 1, expected one row; TENSOR[i] takes the "
                            "i-th slice",
                            name_, long_axes));
  }
  return values();
}

Array read_array(const std::string& name) {
  const OpenedArray array(name);
  return {array.shape(), array.dtype(), array.values()};
}

Dtype npy_dtype(Dtype dtype) {
  if (dtype == Dtype::BF16) return Dtype::F32;
  return dtype == Dtype::F32 || dtype == Dtype::F16 ? dtype : Dtype::F64;
}

NpyWriter::NpyWriter(const fs::path& path, Dtype dtype, std::span<const std::uint64_t> shape)
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

void write_npy(const fs::path& path, const Array& array) {
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

}  // namespace normscope::checkpoint
