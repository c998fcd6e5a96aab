#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace normscope::audit {

/// JSON as text. Names from a file may hold bytes that are not UTF-8; they show as replacement characters.
[[nodiscard]] inline std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace normscope::audit
