#include "hub_cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

namespace normscope::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_prefix = "models--";
/// A revision is a hash of 40 digits; longer contents of refs/main are not a revision.
constexpr std::size_t longest_revision = 64;

bool is_name_part(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && std::all_of(part.begin(), part.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path cache() {
  if (const std::string hub = environment("HF_HUB_CACHE"); !hub.empty()) return hub;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) {
    return fs::path(xdg) / "huggingface/hub";
  }
  const std::string home = environment("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache/huggingface/hub";
}

/// The revision in refs/main; empty if the file contains no revision.
std::string main_revision(const fs::path& folder) {
  std::ifstream file(folder / "refs/main", std::ios::binary);
  std::string text(longest_revision + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.size() <= longest_revision && is_name_part(text) ? text : "";
}

}  // namespace

fs::path snapshot_of(const fs::path& path) {
  std::error_code error;
  const fs::path folder = path.filename().empty() ? path.parent_path() : path;
  if (folder.filename().string().rfind(folder_prefix, 0) != 0 ||
      !fs::is_directory(folder / "snapshots", error)) {
    return path;
  }
  const std::string revision = main_revision(folder);
  if (!revision.empty() && fs::is_directory(folder / "snapshots" / revision, error)) {
    return folder / "snapshots" / revision;
  }
  const std::vector<fs::path> snapshots = list_folder(folder / "snapshots", error);
  if (snapshots.size() == 1) return snapshots.front();
  throw Error(ErrorCode::Argument,
              fmt::format("checkpoint: {}: has {} snapshots and no refs/main that names one, expected one; "
                          "name the snapshot to open",
                          path.string(), snapshots.size()));
}

fs::path place_in_cache(const fs::path& name) {
  const std::string text = name.string();
  const std::size_t slash = text.find('/');
  const std::string_view all = text;
  const bool is_name = slash == std::string::npos
                           ? is_name_part(all)
                           : is_name_part(all.substr(0, slash)) && is_name_part(all.substr(slash + 1));
  const fs::path folder = cache();
  if (!is_name || folder.empty()) return {};
  std::string entry = std::string(folder_prefix) + text;
  if (slash != std::string::npos) entry.replace(folder_prefix.size() + slash, 1, "--");
  return folder / entry;
}

std::optional<fs::path> cached(const fs::path& name) {
  const fs::path folder = place_in_cache(name);
  std::error_code ignored;
  if (folder.empty() || !fs::is_directory(folder, ignored)) return std::nullopt;
  return snapshot_of(folder);
}

}  // namespace normscope::checkpoint
