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

[[noreturn]] void fail_member(const std::string& file, std::string_view format, const std::string& member) {
  throw Error(
      ErrorCode::Argument,
      fmt::format("checkpoint: {}: is {}, expected a PyTorch file, whose members have names; found {}", file,
                  format, quote(member)));
}

[[noreturn]] void fail_unread(const std::string& name, const FileFormat& format, std::string_view expected) {
  const std::string advised = advice(format);
  throw Error(ErrorCode::Unsupported,
              fmt::format("checkpoint: {}: format is {}, expected {}{}{}", name, format.name, expected,
                          advised.empty() ? "" : "; ", advised));
}

/// Opens a zip written by torch.save or numpy.savez.
Shard open_zip(ShardRequest request) {
  const std::string name = request.path.string();
  const StoredBytes stored(*request.file);
  std::vector<std::byte> directory;
  const std::vector<ZipMember> found = read_zip_directory(stored, directory, "pytorch: " + name);
  if (is_keras_archive(found)) fail_unread(name, formats::hdf5, request.expected);
  if (!is_npz(found)) {
    ParsedFile parsed = parse_torch_zip(stored, "pytorch: " + name, request.member);
    return take_parsed(std::move(request.file), std::move(parsed), "pytorch");
  }
  if (!request.member.empty()) fail_member(name, formats::npy.name, request.member);
  return open_parsed(std::move(request), "npz",
                     [](std::span<const std::byte> bytes, const std::string& where) {
                       // Tensors of arrays are named as their members are in the file.
                       return parse_npz(bytes, read_zip_directory(bytes, where), where);
                     });
}

}  // namespace

namespace formats {

extern const FileFormat zip{.name = "PyTorch or NumPy zip",
                            .begins =
                                [](std::string_view text) {
                                  return text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06");
                                },
                            .named = [](const fs::path& path) { return has_extension(path, {".npz"}); },
                            .open = open_zip,
                            .has_members = true};

extern const FileFormat shard_index{
    .name = "index of shards",
    .begins =
        [](std::string_view text) {
          const std::size_t first = text.find_first_not_of(" \t\r\n");
          return first != std::string_view::npos && text[first] == '{';
        },
    .named = [](const fs::path& path) { return has_extension(path, {".json"}); }};

}  // namespace formats

Shard take_parsed(std::unique_ptr<Source> file, ParsedFile parsed, std::string_view format) {
  Shard shard{std::move(file)};
  shard.contents.tensors = std::move(parsed.tensors);
  shard.contents.metadata = std::move(parsed.metadata);
  shard.arena = std::move(parsed.arena);
  shard.graph = std::move(parsed.graph);
  shard.views = std::move(parsed.views);
  shard.format = format;
  return shard;
}

Shard open_parsed(ShardRequest request, std::string_view format, const Parse& parse) {
  std::vector<std::byte> held;
  ParsedFile parsed =
      parse(whole(*request.file, request.path, held), fmt::format("{}: {}", format, request.path.string()));
  Shard shard = take_parsed(std::move(request.file), std::move(parsed), format);
  shard.held = std::move(held);
  return shard;
}

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

const FileFormat& format_of(const Source& file, const fs::path& path) {
  std::vector<std::byte> buffer;
  const StoredBytes bytes(file);
  return file_format(path, bytes.part(0, std::min(bytes.size(), told_by)).fetch(buffer));
}

Shard open_shard(ShardRequest request, const FileFormat& format) {
  const std::string name = request.path.string();
  if (!advice(format).empty()) fail_unread(name, format, request.expected);
  if (!request.member.empty() && !format.has_members) fail_member(name, format.name, request.member);
  if (format.open == nullptr) fail_unread(name, format, request.expected);
  return format.open(std::move(request));
}

void check_sums(const Checkpoint& checkpoint) {
  if (checkpoint.format() != "pytorch") return;
  for (const std::filesystem::path& path : checkpoint.files()) {
    const MappedFile file(path);
    if (&file_format(path, file.bytes()) == &formats::zip) {
      check_zip(file.bytes(), "checkpoint: " + path.string());
    }
  }
}

}  // namespace normscope::files
