#pragma once

#include <string>

#include <nlohmann/json.hpp>

/// JSON as text for files and terminals.
namespace normscope {

/// One line, or one line per entry if `indent` is 0 or more. Bytes of names that are not UTF-8 become
/// replacement characters.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace normscope
