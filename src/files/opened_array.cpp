#include <normscope/files/array.hpp>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>
#include <normscope/files/zip.hpp>
#include "parsed_file.hpp"

#include "file_format.hpp"
#include "readers.hpp"

namespace normscope::files {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

/// FILE or FILE:MEMBER.
struct ArrayName {
  fs::path file;
  std::optional<std::string> member;
};

/// Both parts may contain colons: the file is the longest prefix that exists, or else that the hub's cache
/// holds; empty if there is none.
std::optional<ArrayName> find_name(const std::string& name) {
  std::error_code ignored;  // a name that is too long for a path does not exist
  if (fs::exists(name, ignored)) return ArrayName{name, std::nullopt};
  for (std::size_t colon = name.rfind(':'); colon != std::string::npos && colon > 0;
       colon = name.rfind(':', colon - 1)) {
    const std::string file = name.substr(0, colon);
    if (fs::exists(file, ignored)) return ArrayName{file, name.substr(colon + 1)};
    // A model's name has no colon, so that this is the last part that is tried.
    if (const std::optional<fs::path> snapshot = cached(file)) {
      return ArrayName{*snapshot, name.substr(colon + 1)};
    }
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

/// "it has 3 tensors: "a", "b", ..." for a message.
std::string list_names(std::span<const std::string_view> names, std::string_view what) {
  constexpr std::size_t most = 6;
  std::string list = fmt::format("it has {} {}{}", names.size(), what, names.empty() ? "" : ": ");
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    list += (i > 0 ? ", " : "") + quote(names[i]);
  }
  return names.size() > most ? list + ", ..." : list;
}

/// Suggests the name that `member` probably stands for, or else lists the names in the file.
[[noreturn]] void fail_name(const fs::path& file, const std::optional<std::string>& member,
                            std::span<const std::string_view> names, std::string_view what) {
  const std::string complaint = member ? fmt::format("has no {}", quote(*member))
                                       : std::string("holds named arrays, expected FILE:NAME");
  const std::string_view nearest = member ? nearest_name(*member, names) : std::string_view();
  throw Error(ErrorCode::Argument,
              fmt::format("array: {}: {}; {}", file.string(), complaint,
                          nearest.empty() ? list_names(names, what)
                                          : fmt::format("did you mean {}?", quote(nearest))));
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
  const ZipMember* found = name.member ? find_npz_member(members, *name.member) : nullptr;
  if (found != nullptr) return *found;
  std::vector<std::string_view> names;
  for (const ZipMember& member : members) {
    names.emplace_back(member.name);
    if (names.back().ends_with(".npy")) names.back().remove_suffix(4);  // as NumPy names them
  }
  fail_name(name.file, name.member, names, "members");
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
  std::vector<std::string_view> names;
  for (const Tensor& tensor : checkpoint.tensors()) names.emplace_back(tensor.name);
  fail_name(name.file, name.member, names, "tensors");
}

/// Files that are read tensor by tensor are not mapped: pages of a mapping that were read stay in the
/// process's memory, at the end the whole model.
std::unique_ptr<Source> open_by_tensor(const fs::path& file) {
  return file_format(file, {}).by_tensor ? read_file(file) : map_file(file);
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
    const FileFormat& format = file_format(found->file, file->bytes());
    const bool is_npy = &format == &formats::npy;
    if (is_npy || &format == &formats::idx) {
      if (found->member) {
        throw Error(ErrorCode::Argument,
                    fmt::format("array: {}: is a single array, expected no name after it, found {}",
                                found->file.string(), quote(*found->member)));
      }
      array.fills_file_ = true;
      return take(is_npy ? open_npy(file, "npy: " + array.file_->string())
                         : open_idx(*file, "idx: " + array.file_->string()));
    }
    if (&format == &formats::pickle) return tensor_of_member(*found);
    if (&format == &formats::zip) {
      const std::string where = "npz: " + found->file.string();
      const std::vector<ZipMember> members = read_zip_directory(file->bytes(), where);
      if (is_keras_archive(members)) return tensor(*found);
      if (!is_torch_zip(members)) {
        return take(open_npz_member(file, find_member(members, *found), where));
      }
      return tensor_of_member(*found);
    }
    tensor(*found);
  }

  void numbers() const {
    const std::optional<Array> written = parse_written(array.name_);
    if (!written) fail_missing(array.name_);
    const auto elements = std::make_shared<std::vector<std::byte>>(written->values.size() * sizeof(double));
    encode(Dtype::F64, written->values, *elements);
    take({written->shape, Dtype::F64, [elements](std::vector<std::byte>&) { return Bytes(*elements); }});
  }

  /// FILE:MEMBER:TENSOR of a PyTorch file whose state dict is a member.
  void tensor_of_member(const ArrayName& name) const {
    const std::size_t colon = name.member ? name.member->rfind(':') : std::string::npos;
    if (colon == std::string::npos) return tensor(name);
    tensor({name.file.string() + ":" + name.member->substr(0, colon), name.member->substr(colon + 1)});
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

  void take(StoredArray stored) const {
    array.shape_ = std::move(stored.shape);
    array.dtype_ = stored.dtype;
    array.fetch_ = std::move(stored.fetch);
  }
};

std::shared_ptr<const Checkpoint> open_checkpoint(const fs::path& path) {
  return std::make_shared<const Checkpoint>(path, open_by_tensor);
}

Checkpoint open_noted(const fs::path& path, UnchangedFiles& noted, const OpenSource& open) {
  return Checkpoint(path, [&](const fs::path& file) {
    noted.note(file);
    noted.note(file.parent_path() / "config.json");
    return open ? open(file) : open_by_tensor(file);
  });
}

OpenedArray::OpenedArray(std::string name, const OpenCheckpoint& open) : name_(std::move(name)) {
  Opener{*this, open}.name();
  count();
}

OpenedArray::OpenedArray(std::string name, StoredArray stored) : name_(std::move(name)) {
  Opener{*this, open_checkpoint}.take(std::move(stored));
  count();
}

void OpenedArray::count() {
  elements_ = 1;
  // Every format has checked the product against the size of the file.
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

}  // namespace normscope::files
