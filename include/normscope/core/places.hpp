#pragma once

#include <filesystem>

/// Whether paths lead to the same place, through links and mounts, and where the files do not exist yet.
namespace normscope {

[[nodiscard]] bool is_same_place(const std::filesystem::path& a, const std::filesystem::path& b);

/// Whether `path` is `folder` or lies below it.
[[nodiscard]] bool lies_within(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace normscope
