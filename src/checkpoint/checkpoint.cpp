#include <normscope/checkpoint/checkpoint.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include <normscope/checkpoint/safetensors.hpp>
#include <normscope/core/assert.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

#include "file_format.hpp"
#include "hub_folder.hpp"
#include "onnx.hpp"
#include "parsed_file.hpp"
#include "quote.hpp"
#include "shard_index.hpp"
#include "torch_zip.hpp"

namespace normscope::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_index = std::size_t{64} << 20;

/// One open file; its tensors have moved out.
struct Shard {
  MappedFile file;
  SafetensorsContents contents;
};

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Shard open_shard(MappedFile file, const fs::path& path) {
  SafetensorsContents contents = parse_safetensors(file.bytes(), "safetensors: " + path.string());
  return {std::move(file), std::move(contents)};
}

[[noreturn]] void fail_index(const fs::path& index, const std::string& what) {
  throw Error(ErrorCode::Format, fmt::format("checkpoint: {}: {}", index.string(), what));
}

}  // namespace

struct Checkpoint::Contents {
  fs::path path;
  std::vector<fs::path> files;
  std::vector<Shard> shards;
  std::vector<Tensor> tensors;
  std::vector<std::uint32_t> file_of;  ///< index into `files`, one a tensor
  std::map<std::string, std::string, std::less<>> metadata;
  std::optional<std::string> config_text;
  std::string_view format = "safetensors";
  std::optional<Arena> arena;  ///< what tensors of other formats may point into
  std::vector<StatedNorm> norms;

  void open_single(MappedFile file, const fs::path& at);
  void open_index(const MappedFile& file, const fs::path& at);
  void open_parsed(MappedFile file, const fs::path& at, ParsedFile parsed);
  void add(Shard shard, const fs::path& at);
};

void Checkpoint::Contents::add(Shard shard, const fs::path& at) {
  files.push_back(at);
  for (const auto& [key, value] : shard.contents.metadata) metadata.try_emplace(key, value);
  shard.contents.metadata.clear();
  shards.push_back(std::move(shard));
}

void Checkpoint::Contents::open_single(MappedFile file, const fs::path& at) {
  add(open_shard(std::move(file), at), at);
  tensors = std::move(shards.front().contents.tensors);
  file_of.assign(tensors.size(), 0);
}

void Checkpoint::Contents::open_parsed(MappedFile file, const fs::path& at, ParsedFile parsed) {
  add({std::move(file), {}}, at);
  tensors = std::move(parsed.tensors);
  file_of.assign(tensors.size(), 0);
  metadata = std::move(parsed.metadata);
  arena = std::move(parsed.arena);
  norms = std::move(parsed.norms);
}

void Checkpoint::Contents::open_index(const MappedFile& file, const fs::path& at) {
  if (file.bytes().size() > largest_index) {
    fail_index(at, fmt::format("has {} bytes, expected at most {}", file.bytes().size(), largest_index));
  }
  const auto shard_of = parse_shard_index(text_of(file), "checkpoint: " + at.string());
  std::map<std::string_view, std::uint32_t> numbers;
  for (const auto& [tensor, shard] : shard_of) numbers.try_emplace(shard, 0);
  for (auto& [name, number] : numbers) {
    number = static_cast<std::uint32_t>(files.size());
    const fs::path shard_path = at.parent_path() / name;
    if (std::error_code ignored; !fs::exists(shard_path, ignored))
      fail_index(at, fmt::format("names the shard {}, which is missing", quote(name)));
    add(open_shard(MappedFile(shard_path), shard_path), shard_path);
  }

  // Tensors come sorted from the map, and each is looked for in its own shard only.
  tensors.reserve(shard_of.size());
  file_of.reserve(shard_of.size());
  for (const auto& [name, shard] : shard_of) {
    const std::uint32_t number = numbers.at(shard);
    const std::vector<Tensor>& held = shards[number].contents.tensors;
    const auto found = std::lower_bound(held.begin(), held.end(), name,
                                        [](const Tensor& a, const std::string& b) { return a.name < b; });
    if (found == held.end() || found->name != name) {
      fail_index(at,
                 fmt::format("puts tensor {} into {}, which does not have it", quote(name), quote(shard)));
    }
    tensors.push_back(*found);
    file_of.push_back(number);
  }
  for (const auto& [name, number] : numbers) {
    for (const Tensor& tensor : shards[number].contents.tensors) {
      const auto listed = shard_of.find(tensor.name);
      if (listed == shard_of.end()) {
        fail_index(at, fmt::format("does not list tensor {} of {}", quote(tensor.name), quote(name)));
      }
      if (listed->second != name) {
        fail_index(at, fmt::format("tensor {} is in both {} and {}", quote(tensor.name),
                                   quote(listed->second), quote(name)));
      }
    }
  }
  for (Shard& shard : shards) shard.contents.tensors = {};
}

Checkpoint::Checkpoint(const fs::path& path) : contents_(std::make_unique<Contents>()) {
  contents_->path = path;
  const fs::path at = entry_file(path);
  MappedFile file(at);
  const FileFormat format = file_format(at, file.bytes());
  switch (format) {
    case FileFormat::safetensors:
    case FileFormat::unknown: contents_->open_single(std::move(file), at); break;
    case FileFormat::shard_index: contents_->open_index(file, at); break;
    case FileFormat::onnx: {
      contents_->format = "onnx";
      ParsedFile parsed = parse_onnx(file.bytes(), "onnx: " + at.string());
      contents_->open_parsed(std::move(file), at, std::move(parsed));
      break;
    }
    case FileFormat::zip: {
      contents_->format = "pytorch";
      ParsedFile parsed = parse_torch_zip(file.bytes(), "pytorch: " + at.string());
      contents_->open_parsed(std::move(file), at, std::move(parsed));
      break;
    }
    default:
      throw Error(ErrorCode::Unsupported,
                  fmt::format("checkpoint: {}: format is {}, expected safetensors, ONNX or PyTorch zip",
                              at.string(), describe(format)));
  }
  if (at != path || format == FileFormat::shard_index || is_hub_weights_name(at.filename().string())) {
    contents_->config_text = config_beside(at);
  }
}

Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

const fs::path& Checkpoint::path() const { return contents_->path; }
const std::vector<fs::path>& Checkpoint::files() const { return contents_->files; }
std::string_view Checkpoint::format() const { return contents_->format; }
std::span<const Tensor> Checkpoint::tensors() const { return contents_->tensors; }
const std::map<std::string, std::string, std::less<>>& Checkpoint::metadata() const {
  return contents_->metadata;
}
std::span<const StatedNorm> Checkpoint::stated_norms() const { return contents_->norms; }
const std::optional<std::string>& Checkpoint::config_text() const { return contents_->config_text; }

const Tensor* Checkpoint::find(std::string_view name) const {
  const std::vector<Tensor>& tensors = contents_->tensors;
  const auto found = std::lower_bound(tensors.begin(), tensors.end(), name,
                                      [](const Tensor& a, std::string_view b) { return a.name < b; });
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

const fs::path& Checkpoint::file_of(const Tensor& tensor) const {
  const Tensor* own = find(tensor.name);  // `tensor` may be a copy
  NORMSCOPE_ASSERT(own != nullptr);
  return contents_->files[contents_->file_of[static_cast<std::size_t>(own - contents_->tensors.data())]];
}

std::uint64_t Tensor::elements() const {
  std::uint64_t product = 1;
  for (const std::uint64_t extent : shape) product *= extent;
  return product;
}

std::vector<double> read(const Tensor& tensor, std::uint64_t offset, std::uint64_t count) {
  if (!is_decodable(tensor.dtype)) {
    throw Error(ErrorCode::Unsupported, fmt::format("read: tensor {} is {}, which has no decoder",
                                                    quote(tensor.name), to_string(tensor.dtype)));
  }
  const std::uint64_t elements = tensor.elements();
  if (offset > elements || count > elements - offset) {
    throw Error(ErrorCode::Shape, fmt::format("read: {} elements from {} on, tensor {} has {}", count, offset,
                                              quote(tensor.name), elements));
  }
  const std::size_t width = bits(tensor.dtype) / 8;
  std::vector<double> values(count);
  decode(tensor.dtype, tensor.bytes.subspan(offset * width, count * width), values);
  return values;
}

std::vector<double> read(const Tensor& tensor) { return read(tensor, 0, tensor.elements()); }

}  // namespace normscope::checkpoint
