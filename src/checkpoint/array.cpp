#include <normscope/checkpoint/array.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/checkpoint/idx.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

#include "file_format.hpp"
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

Array read_member(Bytes bytes, const std::vector<ZipMember>& members, const ArrayName& name,
                  const std::string& where) {
  if (name.member) {
    for (const std::string& spelling : {*name.member, *name.member + ".npy"}) {
      const auto found = std::find_if(members.begin(), members.end(), [&spelling](const ZipMember& member) {
        return member.name == spelling;
      });
      if (found != members.end()) return read_npz_member(bytes, *found, where);
    }
  }
  fail_name(name.file, name.member, list_names(members, "members"));
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

/// Checks a shape before the values are read, and throws if it is not accepted.
using ShapeCheck = std::function<void(std::span<const std::uint64_t>)>;

Array read_slice(const Tensor& tensor, std::uint64_t index, const fs::path& file, const ShapeCheck& check) {
  if (tensor.shape.empty() || index >= tensor.shape[0]) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("array: {}: no slice {} of tensor {}, which has {} along its first axis", file.string(),
                    index, quote(tensor.name), tensor.shape.empty() ? 0 : tensor.shape[0]));
  }
  check(tensor.shape.subspan(1));
  const std::uint64_t size = tensor.elements() / tensor.shape[0];
  return {{tensor.shape.begin() + 1, tensor.shape.end()}, tensor.dtype, read(tensor, index * size, size)};
}

Array read_tensor(const ArrayName& name, const ShapeCheck& check) {
  const Checkpoint checkpoint(name.file);
  if (name.member) {
    if (const Tensor* tensor = checkpoint.find(*name.member)) {
      check(tensor->shape);
      return {{tensor->shape.begin(), tensor->shape.end()}, tensor->dtype, read(*tensor)};
    }
    if (const std::optional<Slice> slice = parse_slice(*name.member)) {
      if (const Tensor* tensor = checkpoint.find(slice->tensor))
        return read_slice(*tensor, slice->index, name.file, check);
    }
  }
  fail_name(name.file, name.member, list_names(checkpoint.tensors(), "tensors"));
}

Array read_checked(const std::string& name, const ShapeCheck& check) {
  const std::optional<ArrayName> found = find_name(name);
  if (!found) {
    if (std::optional<Array> written = parse_written(name)) return std::move(*written);
    fail_missing(name);
  }
  const ArrayName& parts = *found;
  std::error_code ignored;
  if (fs::is_directory(parts.file, ignored)) return read_tensor(parts, check);
  const MappedFile file(parts.file);
  const FileFormat format = file_format(parts.file, file.bytes());
  switch (format) {
    case FileFormat::npy:
    case FileFormat::idx:
      if (parts.member) {
        throw Error(ErrorCode::Argument,
                    fmt::format("array: {}: is a single array, expected no name after it, found {}",
                                parts.file.string(), quote(*parts.member)));
      }
      return format == FileFormat::npy ? read_npy(file.bytes(), "npy: " + parts.file.string())
                                       : read_idx(file.bytes(), "idx: " + parts.file.string());
    case FileFormat::zip: {
      const std::string where = "npz: " + parts.file.string();
      const std::vector<ZipMember> members = read_zip_directory(file.bytes(), where);
      return is_torch_zip(members) ? read_tensor(parts, check)
                                   : read_member(file.bytes(), members, parts, where);
    }
    default: return read_tensor(parts, check);
  }
}

}  // namespace

Array read_array(const std::string& name) {
  return read_checked(name, [](std::span<const std::uint64_t>) {});
}

std::vector<double> read_row(const std::string& name) {
  const ShapeCheck check = [&name](std::span<const std::uint64_t> shape) {
    const auto long_axes = std::count_if(shape.begin(), shape.end(), [](std::uint64_t n) { return n != 1; });
    if (long_axes > 1) {
      throw Error(ErrorCode::Shape,
                  fmt::format("array: {}: has {} axes longer than 1, expected one row; TENSOR[i] takes the "
                              "i-th slice",
                              name, long_axes));
    }
  };
  Array array = read_checked(name, check);
  check(array.shape);
  return std::move(array.values);
}

std::optional<std::filesystem::path> array_file(const std::string& name) {
  if (const std::optional<ArrayName> found = find_name(name)) return found->file;
  if (parse_written(name)) return std::nullopt;
  fail_missing(name);
}

std::optional<TensorName> tensor_name(const std::string& name) {
  const std::optional<ArrayName> found = find_name(name);
  if (!found) {
    if (parse_written(name)) return std::nullopt;
    fail_missing(name);
  }
  if (!found->member) return std::nullopt;
  std::error_code ignored;
  if (!fs::is_directory(found->file, ignored)) {
    const MappedFile file(found->file);
    const FileFormat format = file_format(found->file, file.bytes());
    if (format == FileFormat::npy || format == FileFormat::idx) return std::nullopt;
    if (format == FileFormat::zip &&
        !is_torch_zip(read_zip_directory(file.bytes(), "npz: " + found->file.string()))) {
      return std::nullopt;
    }
  }
  return TensorName{found->file, *found->member};
}

void write_npy(const fs::path& path, const Array& array) {
  const std::optional<std::uint64_t> elements = element_count(array.shape);
  if (elements != array.values.size()) {
    throw Error(
        ErrorCode::Shape,
        fmt::format("write_npy: {}: the shape has {} elements, expected {}, the number of values",
                    path.string(), elements ? std::to_string(*elements) : "too many", array.values.size()));
  }
  const Dtype dtype = array.dtype == Dtype::BF16                               ? Dtype::F32
                      : array.dtype == Dtype::F32 || array.dtype == Dtype::F16 ? array.dtype
                                                                               : Dtype::F64;
  const std::size_t width = bits(dtype) / 8;
  constexpr std::size_t step = 8192;
  std::array<std::byte, step * sizeof(double)> buffer;
  AtomicFile file(path);
  file.write(npy_preamble(dtype, array.shape));
  for (std::size_t begin = 0; begin < array.values.size(); begin += step) {
    const std::size_t count = std::min(step, array.values.size() - begin);
    const std::span<std::byte> bytes(buffer.data(), count * width);
    encode(dtype, std::span(array.values).subspan(begin, count), bytes);
    file.write(bytes);
  }
  file.commit();
}

}  // namespace normscope::checkpoint
