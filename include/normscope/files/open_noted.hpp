#pragma once

#include <filesystem>
#include <memory>

#include <normscope/core/unchanged.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>

namespace normscope::files {

/// The checkpoint at that path, opened by `open` or, without it, as `open_checkpoint` does. Its files and
/// configuration are noted before they are opened. Before a result is written, `noted.expect()` tells whether
/// they are still the same: of a file that another process overwrites meanwhile, numbers would be of two
/// files, or of none.
///
/// Errors    as `Checkpoint`
[[nodiscard]] Checkpoint open_noted(const std::filesystem::path& path, UnchangedFiles& noted,
                                    const OpenSource& open = {});

}  // namespace normscope::files
