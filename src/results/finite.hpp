#pragma once

#include <cmath>

#include <nlohmann/json.hpp>

namespace normscope::results {

/// The number, or null, since JSON has neither infinities nor NaN.
inline nlohmann::ordered_json finite_json(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

}  // namespace normscope::results
