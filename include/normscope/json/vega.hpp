#pragma once

#include <nlohmann/json_fwd.hpp>

/// What figures are put together from: parts of Vega-Lite specifications, https://vega.github.io/vega-lite.
namespace normscope::vega {

/// The specification with the schema it follows.
[[nodiscard]] nlohmann::ordered_json specification(nlohmann::ordered_json parts);

/// Rows as the data of a figure or of one of its layers.
[[nodiscard]] nlohmann::ordered_json values(nlohmann::ordered_json rows);

/// A field of numbers on a linear axis; one on a logarithmic axis.
[[nodiscard]] nlohmann::ordered_json quantity(const char* field, const char* title);
[[nodiscard]] nlohmann::ordered_json logarithmic(const char* field, const char* title);

}  // namespace normscope::vega
