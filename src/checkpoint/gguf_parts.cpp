#include "gguf_parts.hpp"

#include <string_view>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Number of digits in a part's name, which limits the number of parts.
constexpr std::size_t part_digits = 5;

/// `text` as a number; `fallback` unless it consists of 1 to 9 digits.
std::uint64_t whole_number(std::string_view text, std::uint64_t fallback) {
  const bool is_number =
      !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? std::stoull(std::string(text)) : fallback;
}

}  // namespace

std::string GgufPart::name(std::uint64_t other) const {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, other, count);
}

std::optional<GgufPart> gguf_part(const std::string& name) {
  const std::size_t ending = GgufPart{"", 1, 1}.name(1).size();
  if (name.size() <= ending) return std::nullopt;
  const std::string_view end = std::string_view(name).substr(name.size() - ending);
  const GgufPart part{name.substr(0, name.size() - ending), whole_number(end.substr(1, part_digits), 0),
                      whole_number(end.substr(10, part_digits), 0)};
  const bool is_part = part.number >= 1 && part.number <= part.count && part.name(part.number) == name;
  return is_part ? std::optional(part) : std::nullopt;
}

std::vector<fs::path> gguf_files(const fs::path& path,
                                 const std::map<std::string, std::string, std::less<>>& metadata) {
  const auto stated = [&metadata](std::string_view key, std::uint64_t fallback) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? fallback : whole_number(found->second, fallback);
  };
  const std::uint64_t count = stated("split.count", 1);
  if (count <= 1) return {path};
  const std::uint64_t number = stated("split.no", 0) + 1;
  const std::optional<GgufPart> part = gguf_part(path.filename().string());
  if (!part || part->number != number || part->count != count) {
    throw Error(ErrorCode::Format,
                fmt::format("gguf: {}: is part {} of {}, expected a name that ends with {}", path.string(),
                            number, count, GgufPart{"", number, count}.name(number)));
  }
  std::vector<fs::path> files;
  for (std::uint64_t i = 1; i <= count; ++i) files.push_back(path.parent_path() / part->name(i));
  return files;
}

}  // namespace normscope::checkpoint
