#pragma once

#include <filesystem>
#include <vector>

#include <normscope/selectability/reach.hpp>

namespace normscope::cli {

/// What an interrupted `reach` had decided, in a file of lines: a header that names the logits it belongs
/// to, then a token a line with all that proves its answer: going on from it leads to the same bytes.
/// Errors    Io; Format for a file that is none; Argument for one that belongs to other logits
void save_reach(const std::filesystem::path& path, const selectability::Logits& logits, double tolerance,
                const std::vector<selectability::TokenReach>& tokens);
[[nodiscard]] std::vector<selectability::TokenReach> load_reach(const std::filesystem::path& path,
                                                                const selectability::Logits& logits,
                                                                double tolerance);

}  // namespace normscope::cli
