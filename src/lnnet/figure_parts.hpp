#pragma once

#include <cmath>

#include <nlohmann/json.hpp>

#include <normscope/json/vega.hpp>

/// What the figures share.
namespace normscope::lnnet::detail {

using Json = nlohmann::ordered_json;

using vega::quantity;
using vega::specification;
using vega::values;

/// As many digits as a screen can show.
inline double shortened(double value) {
  constexpr double scale = 1e4;
  return std::round(value * scale) / scale;
}

}  // namespace normscope::lnnet::detail
