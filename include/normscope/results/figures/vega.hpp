#pragma once

#include <nlohmann/json_fwd.hpp>

/// Parts of Vega-Lite specifications (https://vega.github.io/vega-lite), from which figures are built.
namespace normscope::vega {

/// The specification with the schema it follows.
[[nodiscard]] nlohmann::ordered_json specification(nlohmann::ordered_json parts);

/// Rows as the data of a figure or of one of its layers.
[[nodiscard]] nlohmann::ordered_json values(nlohmann::ordered_json rows);

/// A field of numbers on a linear axis; one on a logarithmic axis.
[[nodiscard]] nlohmann::ordered_json quantity(const char* field, const char* title);
[[nodiscard]] nlohmann::ordered_json logarithmic(const char* field, const char* title);
/// A field that numbers things, layers for instance: its axis has no ticks between two of them.
[[nodiscard]] nlohmann::ordered_json ordinal(const char* field, const char* title);

/// The titles of a figure's axes, and whether they are logarithmic.
struct Axes {
  const char* x = "";
  const char* y = "";
  bool logarithmic_x = false;
  bool logarithmic_y = false;
};

/// Lines over a number, one colour per series, each in a band if its rows have `low` and `high`.
///
/// Rows      {"series", "x", "y"} and perhaps {"low", "high"}
[[nodiscard]] nlohmann::ordered_json curves(nlohmann::ordered_json rows, const Axes& axes);

/// One dot per row over two numbers, one colour per series.
///
/// Rows      {"series", "x", "y"}
[[nodiscard]] nlohmann::ordered_json points(nlohmann::ordered_json rows, const Axes& axes);

/// One dot per row with its interval, side by side by `x` (a name, or a number used as a name), one colour
/// per series.
///
/// Rows      {"x", "series", "y"} and perhaps {"low", "high"}
[[nodiscard]] nlohmann::ordered_json dots(nlohmann::ordered_json rows, const Axes& axes);

/// A field of colours from 0 up to `most`.
///
/// Rows      {"x", "y", "value"}
[[nodiscard]] nlohmann::ordered_json heat_map(nlohmann::ordered_json rows, const Axes& axes,
                                              const char* value, double most);

}  // namespace normscope::vega
