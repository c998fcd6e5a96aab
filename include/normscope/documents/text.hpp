#pragma once

#include <string>

#include <nlohmann/json.hpp>

/// JSON as files and terminals get it.
namespace normscope {

/// One line, or a line an entry where `indent` is 0 or more. Names from a file may hold bytes that are not
/// UTF-8; they show as replacement characters.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace normscope
