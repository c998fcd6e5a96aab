#include "shard.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <system_error>

#include <fmt/core.h>

#include <normscope/bytes/quote.hpp>
#include <normscope/core/error.hpp>

#include "flax.hpp"
#include "gguf.hpp"
#include "onnx.hpp"
#include "torch_legacy.hpp"
#include "torch_zip.hpp"

namespace normscope::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Number of bytes at the start of a file that identify its format.
constexpr std::uint64_t told_by = 4096;

/// All bytes of `file`, for formats that store tensors at arbitrary places; in `held` if it is not mapped.
std::span<const std::byte> whole(const bytes::Source& file, const fs::path& path,
                                 std::vector<std::byte>& held) {
  const bytes::StoredBytes bytes(file);
  if (!bytes.in_memory() && bytes.size() > bytes::largest_held) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("checkpoint: {}: has {} bytes, expected at most {} for a format that is loaded "
                            "whole; safetensors and GGUF files may have any size",
                            path.string(), bytes.size(), bytes::largest_held));
  }
  return bytes.fetch(held);
}

using Parse = std::function<ParsedFile(std::span<const std::byte>, const std::string&)>;

Shard take(std::unique_ptr<bytes::Source> file, ParsedFile parsed) {
  Shard shard{std::move(file)};
  shard.contents.tensors = std::move(parsed.tensors);
  shard.contents.metadata = std::move(parsed.metadata);
  shard.arena = std::move(parsed.arena);
  shard.graph = std::move(parsed.graph);
  shard.views = std::move(parsed.views);
  return shard;
}

/// Opens a file of a format that is parsed as a whole.
Shard open_parsed(std::unique_ptr<bytes::Source> file, const fs::path& path, const std::string& where,
                  const Parse& parse) {
  std::vector<std::byte> held;
  ParsedFile parsed = parse(whole(*file, path, held), where);
  Shard shard = take(std::move(file), std::move(parsed));
  shard.held = std::move(held);
  return shard;
}

Shard open_onnx(std::unique_ptr<bytes::Source> file, const fs::path& path, const bytes::OpenSource& open) {
  std::vector<std::unique_ptr<bytes::Source>> sources;
  std::vector<fs::path> others;
  std::map<std::string, std::size_t> numbers;
  std::map<std::string_view, std::size_t> in_other;
  const OpenExternal external = [&](std::string_view tensor, const std::string& other) {
    const auto [known, is_new] = numbers.try_emplace(other, sources.size());
    if (is_new) {
      others.push_back(path.parent_path() / other);
      sources.push_back(open(others.back()));
    }
    in_other[tensor] = known->second;
    return bytes::StoredBytes(*sources[known->second]);
  };
  Shard shard = open_parsed(std::move(file), path, "onnx: " + path.string(),
                            [&](std::span<const std::byte> bytes, const std::string& where) {
                              return parse_onnx(bytes, where, open ? external : OpenExternal());
                            });
  shard.views = std::move(sources);
  shard.others = std::move(others);
  shard.in_other = std::move(in_other);
  return shard;
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

FileFormat format_of(const bytes::Source& file, const fs::path& path) {
  std::vector<std::byte> buffer;
  const bytes::StoredBytes bytes(file);
  return file_format(path, bytes.part(0, std::min(bytes.size(), told_by)).fetch(buffer));
}

std::pair<Shard, std::string_view> open_shard(std::unique_ptr<bytes::Source> file, const fs::path& path,
                                              FileFormat format, std::string_view expected,
                                              const std::string& member, const bytes::OpenSource& open) {
  const std::string name = path.string();
  const bool is_torch = format == FileFormat::zip || format == FileFormat::pickle;
  if (!member.empty() && !is_torch) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("checkpoint: {}: is {}, expected a PyTorch file, whose members have names; found {}",
                    name, describe(format), bytes::quote(member)));
  }
  switch (format) {
    case FileFormat::safetensors: {
      SafetensorsContents contents = parse_safetensors(bytes::StoredBytes(*file), "safetensors: " + name);
      return {Shard{std::move(file), std::move(contents)}, "safetensors"};
    }
    case FileFormat::onnx: return {open_onnx(std::move(file), path, open), "onnx"};
    case FileFormat::msgpack:
      return {open_parsed(std::move(file), path, "flax: " + name, parse_flax), "flax"};
    case FileFormat::zip:
    case FileFormat::pickle:
      return {open_parsed(std::move(file), path, "pytorch: " + name,
                          [&](std::span<const std::byte> bytes, const std::string& where) {
                            return format == FileFormat::zip ? parse_torch_zip(bytes, where, member)
                                                             : parse_torch_legacy(bytes, where, member);
                          }),
              "pytorch"};
    default:
      throw Error(ErrorCode::Unsupported,
                  fmt::format("checkpoint: {}: format is {}, expected {}{}{}", name, describe(format),
                              expected, advice(format).empty() ? "" : "; ", advice(format)));
  }
}

Shard open_gguf(std::unique_ptr<bytes::Source> file, const fs::path& path) {
  ParsedFile parsed = parse_gguf(bytes::StoredBytes(*file), "gguf: " + path.string());
  return take(std::move(file), std::move(parsed));
}

}  // namespace normscope::checkpoint
