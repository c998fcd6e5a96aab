#pragma once

#include <normscope/models/token_names.hpp>

#include <string_view>

namespace normscope::models {

/// Parses the contents of `file` like `read_token_names`; only the name of the path is used.
///
/// Errors    Format, naming the file
[[nodiscard]] std::vector<std::string> parse_token_names(std::string_view text,
                                                         const std::filesystem::path& file,
                                                         std::size_t tokens);

}  // namespace normscope::models
