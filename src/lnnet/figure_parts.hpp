#pragma once

#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

/// What the figures share.
namespace normscope::lnnet::detail {

using Json = nlohmann::ordered_json;

inline Json figure(Json spec) {
  spec["$schema"] = "https://vega.github.io/schema/vega-lite/v5.json";
  return spec;
}

inline Json values(Json rows) { return {{"values", std::move(rows)}}; }

inline Json quantity(const char* field, const char* title) {
  return {{"field", field}, {"type", "quantitative"}, {"title", title}};
}

/// As many digits as a screen can show.
inline double shortened(double value) {
  constexpr double scale = 1e4;
  return std::round(value * scale) / scale;
}

}  // namespace normscope::lnnet::detail
