#pragma once

#include <normscope/norm/element.hpp>

/// Elements as numbers in double.
namespace normscope::norm::detail {

inline double number(double value) { return value; }
inline double number(float value) { return static_cast<double>(value); }
inline double number(Bfloat16 value) { return static_cast<double>(to_float(value)); }
inline double number(Float16 value) { return static_cast<double>(to_float(value)); }

inline void put(double value, double& to) { to = value; }
inline void put(double value, float& to) { to = static_cast<float>(value); }
inline void put(double value, Bfloat16& to) { to = to_bfloat16(static_cast<float>(value)); }
inline void put(double value, Float16& to) { to = to_float16(static_cast<float>(value)); }

}  // namespace normscope::norm::detail
