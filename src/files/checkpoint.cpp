#include <normscope/files/checkpoint.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>

#include "file_format.hpp"
#include "parsed_file.hpp"
#include "readers.hpp"
#include "shard.hpp"

namespace normscope::files {
namespace {

namespace fs = std::filesystem;

/// Features and tokens are counted in std::size_t, which may be narrower than the file's numbers.
void check_extents(std::span<const Tensor> tensors, const fs::path& path) {
  for (const Tensor& tensor : tensors) {
    for (const std::uint64_t extent : tensor.shape) {
      if (static_cast<std::size_t>(extent) == extent) continue;
      throw Error(
          ErrorCode::Unsupported,
          fmt::format("checkpoint: {}: tensor {} has a dimension of {}, expected one that fits into {} bits",
                      path.string(), quote(tensor.name), extent, 8 * sizeof(std::size_t)));
    }
  }
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
  std::vector<std::uint32_t> file_of;  ///< index into `files`, one per tensor
  std::map<std::string, std::string, std::less<>> metadata;
  std::optional<std::string> config_text;
  std::string_view format = "safetensors";
  std::optional<OnnxGraph> graph;  ///< its constants are elements of `tensors`
  std::string_view quantization;
  std::vector<std::unique_ptr<QuantizedSource>> packed;

  void open_single(ShardRequest request, const FileFormat& stated);
  void open_index(const Source& file, const fs::path& at, const OpenSource& open);
  void open_parts(std::unique_ptr<Source> file, const fs::path& at, const OpenSource& open);
  void add(Shard shard, const fs::path& at);
};

void Checkpoint::Contents::add(Shard shard, const fs::path& at) {
  files.push_back(at);
  for (const auto& [key, value] : shard.contents.metadata) metadata.try_emplace(key, value);
  shard.contents.metadata.clear();
  shards.push_back(std::move(shard));
}

void Checkpoint::Contents::open_single(ShardRequest request, const FileFormat& stated) {
  const fs::path at = request.path;
  add(open_shard(std::move(request), stated), at);
  format = shards.front().format;
  tensors = std::move(shards.front().contents.tensors);
  graph = std::move(shards.front().graph);
  file_of.assign(tensors.size(), 0);
  const Shard& first = shards.front();
  files.insert(files.end(), first.others.begin(), first.others.end());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto other = first.in_other.find(tensors[i].name);
    if (other != first.in_other.end()) file_of[i] = static_cast<std::uint32_t>(1 + other->second);
  }
}

/// A GGUF file, with the others that its model was split into.
void Checkpoint::Contents::open_parts(std::unique_ptr<Source> file, const fs::path& at,
                                      const OpenSource& open) {
  format = "gguf";
  Shard given = open_gguf(std::move(file), at);
  const std::vector<fs::path> parts = gguf_files(at, given.contents.metadata);
  std::vector<std::pair<Tensor, std::uint32_t>> placed;
  for (const fs::path& part : parts) {
    // One part only has this path.
    // NOLINTNEXTLINE(bugprone-use-after-move)
    Shard shard = part == at ? std::move(given) : open_gguf(open(part), part);
    if (gguf_files(part, shard.contents.metadata) != parts) {
      fail(ErrorCode::Format, "gguf: " + part.string(), "is not a part of the model of " + at.string());
    }
    for (const Tensor& tensor : shard.contents.tensors) {
      placed.emplace_back(tensor, static_cast<std::uint32_t>(files.size()));
    }
    shard.contents.tensors = {};
    add(std::move(shard), part);
  }
  std::sort(placed.begin(), placed.end(),
            [](const auto& a, const auto& b) { return a.first.name < b.first.name; });
  for (const auto& [tensor, number] : placed) {
    tensors.push_back(tensor);
    file_of.push_back(number);
  }
  sort_tensors(tensors, "gguf: " + at.string() + ":");
}

void Checkpoint::Contents::open_index(const Source& file, const fs::path& at, const OpenSource& open) {
  if (file.size() > largest_index) {
    fail_index(at, fmt::format("has {} bytes, expected at most {}", file.size(), largest_index));
  }
  std::vector<std::byte> buffer;
  const std::span<const std::byte> text = StoredBytes(file).fetch(buffer);
  const auto shard_of = parse_shard_index({reinterpret_cast<const char*>(text.data()), text.size()},
                                          "checkpoint: " + at.string());
  std::map<std::string_view, std::uint32_t> numbers;
  for (const auto& [tensor, shard] : shard_of) numbers.try_emplace(shard, 0);
  for (auto& [name, number] : numbers) {
    number = static_cast<std::uint32_t>(files.size());
    const fs::path shard_path = at.parent_path() / name;
    if (std::error_code ignored; !fs::exists(shard_path, ignored))
      fail_index(at, fmt::format("names the shard {}, which is missing", quote(name)));
    std::unique_ptr<Source> opened = open(shard_path);
    const FileFormat& stated = format_of(*opened, shard_path);
    Shard shard = open_shard({std::move(opened), shard_path, "safetensors or PyTorch"}, stated);
    if (number > 0 && shard.format != format) {
      fail_index(at, fmt::format("has shards of two formats, {} and {}, expected one", format, shard.format));
    }
    format = shard.format;
    add(std::move(shard), shard_path);
  }

  // The map yields tensors in sorted order, and each is searched only in its own shard.
  tensors.reserve(shard_of.size());
  file_of.reserve(shard_of.size());
  for (const auto& [name, shard] : shard_of) {
    const std::uint32_t number = numbers.at(shard);
    const std::vector<Tensor>& held = shards[number].contents.tensors;
    const auto found = std::lower_bound(held.begin(), held.end(), name,
                                        [](const Tensor& a, const std::string& b) { return a.name < b; });
    if (found == held.end() || found->name != name) {
      fail_index(at,
                 fmt::format("lists tensor {} in {}, which does not contain it", quote(name), quote(shard)));
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

Checkpoint::Checkpoint(const fs::path& path, const OpenSource& open)
    : contents_(std::make_unique<Contents>()) {
  contents_->path = path;
  const FileMember given = split_member(path);
  const fs::path at = entry_file(given.file);
  std::unique_ptr<Source> file = open(at);
  const FileFormat& format = format_of(*file, at);
  const bool is_index = &format == &formats::shard_index;
  const bool is_gguf = &format == &formats::gguf;
  if ((is_index || is_gguf) && !given.member.empty()) {
    throw Error(ErrorCode::Argument, fmt::format("checkpoint: {}: has no members, found the name of one, {}",
                                                 at.string(), quote(given.member)));
  }
  if (is_index) {
    contents_->open_index(*file, at, open);
  } else if (is_gguf) {
    contents_->open_parts(std::move(file), at, open);
  } else {
    contents_->open_single({std::move(file), at, formats_read, given.member, open}, format);
  }
  check_extents(contents_->tensors, at);
  // A GGUF file has its configuration in its metadata.
  if (!is_gguf && (at != given.file || is_index || is_hub_weights_name(at.filename().string()))) {
    contents_->config_text = config_beside(at);
  }
  if (contents_->config_text && contents_->format == "safetensors") {
    contents_->quantization =
        decode_packed(*contents_->config_text, "checkpoint: " + (at.parent_path() / "config.json").string(),
                      {contents_->tensors, contents_->file_of}, contents_->packed);
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
std::string_view Checkpoint::quantization() const { return contents_->quantization; }
const OnnxGraph* Checkpoint::graph() const { return contents_->graph ? &*contents_->graph : nullptr; }
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

std::string_view Tensor::stored_type() const { return blocks != nullptr ? blocks->name : to_string(dtype); }

std::uint64_t Tensor::stored_bytes() const {
  return blocks != nullptr ? elements() * blocks->bytes / blocks->elements : bytes.size();
}

bool Tensor::is_decodable() const {
  return blocks != nullptr ? quantized != nullptr : normscope::is_decodable(dtype);
}

std::uint64_t Tensor::elements() const {
  std::uint64_t product = 1;
  for (const std::uint64_t extent : shape) product *= extent;
  return product;
}

StoredBytes encoded(const Tensor& tensor, std::uint64_t offset, std::uint64_t count) {
  if (!tensor.is_decodable()) {
    throw Error(ErrorCode::Unsupported, fmt::format("read: tensor {} is {}, which has no decoder",
                                                    quote(tensor.name), tensor.stored_type()));
  }
  const std::uint64_t elements = tensor.elements();
  if (offset > elements || count > elements - offset) {
    throw Error(ErrorCode::Shape,
                fmt::format("read: {} elements from element {} on requested, but tensor {} has {}", count,
                            offset, quote(tensor.name), elements));
  }
  const std::uint64_t width = bits(tensor.dtype) / 8;
  return tensor.bytes.part(offset * width, count * width);
}

std::vector<double> read(const Tensor& tensor, std::uint64_t offset, std::uint64_t count) {
  const StoredBytes bytes = encoded(tensor, offset, count);
  if (count > largest_held / sizeof(double)) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("read: {} elements of tensor {} requested at once, expected at most {}", count,
                            quote(tensor.name), largest_held / sizeof(double)));
  }
  const std::size_t width = bits(tensor.dtype) / 8;
  std::vector<double> values(static_cast<std::size_t>(count));
  // Bytes in memory are decoded at once, others piece by piece, so that there is never a second copy of all
  // of them.
  const std::size_t step = bytes.in_memory() ? values.size() : std::size_t{1} << 17;
  std::vector<std::byte> buffer;
  for (std::size_t at = 0; at < values.size(); at += step) {
    const std::span<double> piece = std::span(values).subspan(at, std::min(step, values.size() - at));
    decode(tensor.dtype, bytes.part(at * width, piece.size() * width).fetch(buffer), piece);
  }
  return values;
}

std::vector<double> read(const Tensor& tensor) { return read(tensor, 0, tensor.elements()); }

}  // namespace normscope::files
