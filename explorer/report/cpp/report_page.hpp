#pragma once

#include <string>
#include <string_view>

namespace normscope::report {

/// The report page without its data: one HTML file that needs nothing from outside itself.
std::string_view page();

/// The page holding the JSON documents `report_json` and `charts_json`, and `activations_json`: null, or an
/// object of a "document" of the schema activations and its "charts".
/// Every `<` in them is written `\u003c`, the same character to JSON, so that no data ends a script element.
/// Shapes: all are complete JSON texts in UTF-8, in which `<` occurs only inside strings.
/// Cost: one copy of the page and the data.
std::string fill(std::string_view report_json, std::string_view charts_json,
                 std::string_view activations_json = "null");

}  // namespace normscope::report
