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

/// What the axes of a figure are called, and whether they are logarithmic.
struct Axes {
  const char* x = "";
  const char* y = "";
  bool logarithmic_x = false;
  bool logarithmic_y = false;
};

/// Lines over a number, a colour a series, each in a band where its rows have one.
/// Rows    {"series", "x", "y"} and perhaps {"low", "high"}
[[nodiscard]] nlohmann::ordered_json curves(nlohmann::ordered_json rows, const Axes& axes);

/// A dot a row with its interval, side by side by `x` (a name or a number taken as one), a colour a series.
/// Rows    {"x", "series", "y"} and perhaps {"low", "high"}
[[nodiscard]] nlohmann::ordered_json dots(nlohmann::ordered_json rows, const Axes& axes);

/// A field of colours from 0 up to `most`. Rows    {"x", "y", "value"}
[[nodiscard]] nlohmann::ordered_json heat_map(nlohmann::ordered_json rows, const Axes& axes,
                                              const char* value, double most);

}  // namespace normscope::vega
