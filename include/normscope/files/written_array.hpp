#pragma once

#include <optional>
#include <string>

#include <normscope/files/array.hpp>

namespace normscope::files {

/// Numbers written out instead of an array's name: `1,1.8,0.6` is a row, `0,0;1,0;0,1` are three. Empty if
/// `text` is something else: it has neither comma nor semicolon, or contains anything but numbers.
///
/// Errors    Argument for a number that is malformed, not finite, or rounds to zero; Shape for rows of
///           different lengths
[[nodiscard]] std::optional<Array> parse_written(const std::string& text);

/// Whether `text` is a single number, nan or inf, which `parse_written` does not accept.
[[nodiscard]] bool is_one_number(const std::string& text);

}  // namespace normscope::files
