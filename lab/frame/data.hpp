#pragma once

#include <filesystem>
#include <string_view>

namespace normscope::lab {

/// Where a file of data lies: `name` under the folder that the environment variable NORMSCOPE_DATA names.
/// Errors    Io, which says what is missing and how to give it
[[nodiscard]] std::filesystem::path data_file(std::string_view name);

}  // namespace normscope::lab
