#pragma once

#include <optional>
#include <string>

#include <normscope/checkpoint/array.hpp>

namespace normscope::checkpoint {

/// Numbers written out where an array's name is expected: `1,1.8,0.6` is a row, `0,0;1,0;0,1` are three.
/// None where `text` is something else: it has neither comma nor semicolon, or anything but numbers.
/// Errors    Argument for a number that is not one, not finite, or zero by rounding alone; Shape for rows of
///           different lengths
[[nodiscard]] std::optional<Array> parse_written(const std::string& text);

/// Whether `text` is a number, or nan or inf, and nothing else: too little for `parse_written`.
[[nodiscard]] bool is_one_number(const std::string& text);

}  // namespace normscope::checkpoint
