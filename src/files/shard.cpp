#include "shard.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>
#include <system_error>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>
#include <normscope/files/zip.hpp>

#include "file_format.hpp"
#include "json_events.hpp"
#include "readers.hpp"

namespace normscope::files {
namespace {

/// Reads `weight_map` and skips the rest of the index.
class IndexReader : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;

  std::map<std::string, std::string, std::less<>> read(std::string_view text) {
    std::size_t position = 0;
    parse_json(text, *this, &position);
    // For example a config.json.
    if (!seen_map_) {
      fail(ErrorCode::Format,
           "has no weight_map, which an index of shards has; name the model's folder or its file of weights");
    }
    if (map_.empty()) fail(ErrorCode::Format, "weight_map is empty");
    return std::move(map_);
  }

  bool null() override { return skip("null"); }
  bool boolean(bool value) override { return skip(value ? "true" : "false"); }
  bool number_integer(number_integer_t) override { return skip("a number"); }
  bool number_unsigned(number_unsigned_t) override { return skip("a number"); }
  bool number_float(number_float_t, const std::string&) override { return skip("a number"); }

  bool start_object(std::size_t) override {
    if (in_map()) unexpected("an object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1) in_map_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    skip("an array");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool key(std::string& text) override {
    if (depth_ == 1) {
      if (text == "weight_map") {
        if (seen_map_) fail(ErrorCode::Format, "index has weight_map twice");
        seen_map_ = in_map_ = true;
      }
    } else if (in_map()) {
      tensor_ = text;
    }
    return true;
  }

  bool string(std::string& text) override {
    if (!in_map()) return skip("a string");
    if (text.empty() || text == "." || text == ".." ||
        text.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      fail(ErrorCode::Format, fmt::format("weight_map puts tensor {} into {}, expected a plain file name",
                                          quote(tensor_), quote(text)));
    }
    if (!map_.emplace(tensor_, text).second)
      fail(ErrorCode::Format, fmt::format("weight_map has tensor {} twice", quote(tensor_)));
    return true;
  }

 protected:
  [[nodiscard]] std::string misplaced(std::string_view found) const override {
    if (depth_ == 0) return fmt::format("index is {}, expected an object", found);
    if (depth_ == 1) return fmt::format("weight_map is {}, expected an object", found);
    return fmt::format("weight_map has {} for tensor {}, expected a file name", found, quote(tensor_));
  }

 private:
  [[nodiscard]] bool in_map() const { return in_map_ && depth_ == 2; }
  bool skip(std::string_view found) {
    if (depth_ == 0 || in_map_) unexpected(found);
    return true;
  }

  std::size_t depth_ = 0;
  bool seen_map_ = false;
  bool in_map_ = false;  ///< between the key weight_map and the end of its value
  std::string tensor_;
  std::map<std::string, std::string, std::less<>> map_;
};

}  // namespace

std::map<std::string, std::string, std::less<>> parse_shard_index(std::string_view text,
                                                                  const std::string& where) {
  return IndexReader(where).read(text);
}

namespace {

namespace fs = std::filesystem;

/// Number of bytes at the start of a file that identify its format.
constexpr std::uint64_t told_by = 4096;

/// All bytes of `file`, for formats that store tensors at arbitrary places; in `held` if it is not mapped.
std::span<const std::byte> whole(const Source& file, const fs::path& path, std::vector<std::byte>& held) {
  const StoredBytes bytes(file);
  if (!bytes.in_memory() && bytes.size() > largest_held) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("checkpoint: {}: has {} bytes, expected at most {} for a format that is loaded "
                            "whole; safetensors, GGUF, PyTorch and ONNX files may have any size",
                            path.string(), bytes.size(), largest_held));
  }
  return bytes.fetch(held);
}

using Parse = std::function<ParsedFile(std::span<const std::byte>, const std::string&)>;

Shard take(std::unique_ptr<Source> file, ParsedFile parsed) {
  Shard shard{std::move(file)};
  shard.contents.tensors = std::move(parsed.tensors);
  shard.contents.metadata = std::move(parsed.metadata);
  shard.arena = std::move(parsed.arena);
  shard.graph = std::move(parsed.graph);
  shard.views = std::move(parsed.views);
  return shard;
}

/// Opens a file of a format that is parsed as a whole.
Shard open_parsed(std::unique_ptr<Source> file, const fs::path& path, const std::string& where,
                  const Parse& parse) {
  std::vector<std::byte> held;
  ParsedFile parsed = parse(whole(*file, path, held), where);
  Shard shard = take(std::move(file), std::move(parsed));
  shard.held = std::move(held);
  return shard;
}

[[noreturn]] void fail_member(const std::string& file, std::string_view format, const std::string& member) {
  throw Error(
      ErrorCode::Argument,
      fmt::format("checkpoint: {}: is {}, expected a PyTorch file, whose members have names; found {}", file,
                  format, quote(member)));
}

[[noreturn]] void fail_unread(const std::string& name, FileFormat format, std::string_view expected) {
  const std::string advised = advice(format);
  throw Error(ErrorCode::Unsupported,
              fmt::format("checkpoint: {}: format is {}, expected {}{}{}", name, describe(format), expected,
                          advised.empty() ? "" : "; ", advised));
}

/// The files beside a checkpoint that hold elements of its tensors, opened once each.
struct OtherFiles {
  const fs::path& path;
  const OpenSource& open;
  std::vector<std::unique_ptr<Source>> sources{};
  std::vector<fs::path> others{};
  std::map<std::string, std::size_t> numbers{};
  std::map<std::string_view, std::size_t> in_other{};

  StoredBytes operator()(std::string_view tensor, const std::string& other) {
    const auto [known, is_new] = numbers.try_emplace(other, sources.size());
    if (is_new) {
      others.push_back(path.parent_path() / other);
      sources.push_back(open(others.back()));
    }
    in_other[tensor] = known->second;
    return StoredBytes(*sources[known->second]);
  }

  void give_to(Shard& shard) {
    for (std::unique_ptr<Source>& source : sources) shard.views.push_back(std::move(source));
    shard.others = std::move(others);
    shard.in_other = std::move(in_other);
  }
};

Shard open_onnx(std::unique_ptr<Source> file, const fs::path& path, const OpenSource& open) {
  OtherFiles others{path, open};
  ParsedFile parsed = parse_onnx(StoredBytes(*file), "onnx: " + path.string(),
                                 open ? OpenExternal(std::ref(others)) : OpenExternal());
  Shard shard = take(std::move(file), std::move(parsed));
  others.give_to(shard);
  return shard;
}

/// Opens a zip written by torch.save or numpy.savez.
std::pair<Shard, std::string_view> open_zip(std::unique_ptr<Source> file, const fs::path& path,
                                            std::string_view expected, const std::string& member) {
  const std::string name = path.string();
  const StoredBytes stored(*file);
  std::vector<std::byte> directory;
  const std::vector<ZipMember> found = read_zip_directory(stored, directory, "pytorch: " + name);
  if (is_keras_archive(found)) fail_unread(name, FileFormat::hdf5, expected);
  if (!is_npz(found)) {
    ParsedFile parsed = parse_torch_zip(stored, "pytorch: " + name, member);
    return {take(std::move(file), std::move(parsed)), "pytorch"};
  }
  if (!member.empty()) fail_member(name, describe(FileFormat::npy), member);
  const auto parse = [](std::span<const std::byte> bytes, const std::string& where) {
    // Tensors of arrays are named as their members are in the file.
    return parse_npz(bytes, read_zip_directory(bytes, where), where);
  };
  return {open_parsed(std::move(file), path, "npz: " + name, parse), "npz"};
}

}  // namespace

FileMember split_member(const fs::path& given) {
  std::error_code ignored;
  const std::string name = given.string();
  if (fs::exists(fs::symlink_status(given, ignored))) return {given};
  for (std::size_t colon = name.rfind(':'); colon != std::string::npos && colon > 0;
       colon = name.rfind(':', colon - 1)) {
    if (fs::exists(name.substr(0, colon), ignored)) return {name.substr(0, colon), name.substr(colon + 1)};
  }
  return {given};
}

FileFormat format_of(const Source& file, const fs::path& path) {
  std::vector<std::byte> buffer;
  const StoredBytes bytes(file);
  return file_format(path, bytes.part(0, std::min(bytes.size(), told_by)).fetch(buffer));
}

std::pair<Shard, std::string_view> open_shard(std::unique_ptr<Source> file, const fs::path& path,
                                              FileFormat format, std::string_view expected,
                                              const std::string& member, const OpenSource& open) {
  const std::string name = path.string();
  if (!advice(format).empty()) fail_unread(name, format, expected);
  const bool is_torch = format == FileFormat::zip || format == FileFormat::pickle;
  if (!member.empty() && !is_torch) fail_member(name, describe(format), member);
  switch (format) {
    case FileFormat::safetensors: {
      SafetensorsContents contents = parse_safetensors(StoredBytes(*file), "safetensors: " + name);
      return {Shard{std::move(file), std::move(contents)}, "safetensors"};
    }
    case FileFormat::onnx: return {open_onnx(std::move(file), path, open), "onnx"};
    case FileFormat::zip: return open_zip(std::move(file), path, expected, member);
    case FileFormat::pickle:
      return {open_parsed(std::move(file), path, "pytorch: " + name,
                          [&](std::span<const std::byte> bytes, const std::string& where) {
                            return parse_torch_legacy(bytes, where, member);
                          }),
              "pytorch"};
    default: break;
  }
  fail_unread(name, format, expected);
}

Shard open_gguf(std::unique_ptr<Source> file, const fs::path& path) {
  ParsedFile parsed = parse_gguf(StoredBytes(*file), "gguf: " + path.string());
  return take(std::move(file), std::move(parsed));
}

void check_sums(const Checkpoint& checkpoint) {
  if (checkpoint.format() != "pytorch") return;
  for (const std::filesystem::path& path : checkpoint.files()) {
    const MappedFile file(path);
    if (file_format(path, file.bytes()) == FileFormat::zip) {
      check_zip(file.bytes(), "checkpoint: " + path.string());
    }
  }
}

}  // namespace normscope::files
