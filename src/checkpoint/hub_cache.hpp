#pragma once

#include <filesystem>
#include <optional>

/// The cache of downloads of Hugging Face's libraries:
/// CACHE/models--ORG--NAME/snapshots/REVISION/FILES, with the revision of a branch in refs/BRANCH. Nothing is
/// ever fetched.
namespace normscope::checkpoint {

/// For a folder models--ORG--NAME of the cache the folder of its snapshot: that of refs/main, else its only
/// one; any other path stays as it is.
///
/// Errors    Argument for a folder with several snapshots and no refs/main; Io
[[nodiscard]] std::filesystem::path snapshot_of(const std::filesystem::path& path);

/// The folder of a model named "NAME" or "ORG/NAME" in the cache, whether it exists or not: in $HF_HUB_CACHE,
/// else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. Empty if `name` is
/// no such name.
[[nodiscard]] std::filesystem::path place_in_cache(const std::filesystem::path& name);

/// The snapshot of a model of that name; nothing where the cache does not hold it.
///
/// Errors    as `snapshot_of`
[[nodiscard]] std::optional<std::filesystem::path> cached(const std::filesystem::path& name);

}  // namespace normscope::checkpoint
