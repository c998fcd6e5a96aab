#pragma once

#include <normscope/model/token_names.hpp>

#include <string_view>

namespace normscope::model {

/// `read_token_names` of what `file` holds; its name alone is looked at.
/// Errors    Format, naming the file
[[nodiscard]] std::vector<std::string> parse_token_names(std::string_view text,
                                                         const std::filesystem::path& file,
                                                         std::size_t tokens);

}  // namespace normscope::model
