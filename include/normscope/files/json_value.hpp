#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace normscope::files {

/// Containers nested deeper than this are left out; configurations nest a few levels.
inline constexpr std::size_t json_depth = 16;
/// Largest number of values of a JSON text, so that its memory is bounded.
inline constexpr std::size_t most_json_values = std::size_t{1} << 20;

/// The value of a JSON text as Python's json module reads it: NaN, Infinity and -Infinity are numbers, and of
/// a key that occurs twice the last value counts. Empty if the text is not JSON or has more than
/// `most_json_values`.
///
/// Cost      time and memory linear in the length of the text, but for the sorting of keys
[[nodiscard]] std::optional<nlohmann::json> read_json(std::string_view text);

/// `text`, a JSON object, in which the key `key` of its top level is `value`; every other byte stays. Empty
/// if the text is no JSON object, or the key has a value that is neither true, false nor null.
[[nodiscard]] std::optional<std::string> with_json_flag(std::string_view text, std::string_view key,
                                                        bool value);

}  // namespace normscope::files
