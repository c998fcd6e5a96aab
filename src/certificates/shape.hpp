#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

/// Reads a result strictly, before anything of it is used.
namespace normscope::certificates {

using Json = nlohmann::json;

/// The document of a text that fits the schema of its kind, one of docs/schemas. Memory is proportional to
/// the text: texts of mostly brackets or commas are refused before a value of them is kept.
///
/// Errors    Format, naming the member, for a text that is not JSON, has a member twice, or differs from the
///           schema: a missing or unknown member, another type, a word or number that the schema excludes
[[nodiscard]] Json read_document(std::string_view text, const std::string& source);

/// The schema of results of that kind, "select" and so on; empty for others.
[[nodiscard]] std::string_view schema_text(std::string_view kind);

}  // namespace normscope::certificates
