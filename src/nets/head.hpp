#pragma once

#include <cstdint>
#include <vector>

#include <normscope/nets/net.hpp>

namespace normscope::nets {

/// A linear head whose largest output identifies the class's interval on the line that contains a value:
///   s_k = k v − t_1 − … − t_k,   v = readout · a
/// with thresholds t between neighbouring classes: halfway between their ranges, or between their means if
/// the ranges overlap. `order` receives the labels in the order of the outputs.
///
/// Shapes    values, classes (clusters); readout (3)
template <typename T>
[[nodiscard]] Layer threshold_head(const std::vector<T>& values, const std::vector<std::uint32_t>& classes,
                                   const std::vector<T>& readout, const std::vector<std::int64_t>& names,
                                   std::vector<std::int64_t>& order);

}  // namespace normscope::nets
