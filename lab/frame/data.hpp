#pragma once

#include <filesystem>
#include <string_view>

namespace normscope::lab {

/// Path of the data file `name` in the folder that the environment variable NORMSCOPE_DATA names.
///
/// Errors    Io if it is missing; the message says how to provide it
[[nodiscard]] std::filesystem::path data_file(std::string_view name);

}  // namespace normscope::lab
