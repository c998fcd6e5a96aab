#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Models that are split into several GGUF files, named STEM-00001-of-00003.gguf and so on.
namespace normscope::checkpoint {

struct GgufPart {
  std::string stem;
  std::uint64_t number = 0;  ///< from 1
  std::uint64_t count = 0;

  /// The name of part `other`.
  [[nodiscard]] std::string name(std::uint64_t other) const;
};

/// The part that a file name states; empty for other names.
[[nodiscard]] std::optional<GgufPart> gguf_part(const std::string& name);

/// The files of the model, of which `path` with that metadata is one, in order: `path` alone unless
/// "split.count" says otherwise. All are in the folder of `path`.
///
/// Errors    Format if "split.no" and "split.count" are not those of the name
[[nodiscard]] std::vector<std::filesystem::path> gguf_files(
    const std::filesystem::path& path, const std::map<std::string, std::string, std::less<>>& metadata);

}  // namespace normscope::checkpoint
