#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/core/view.hpp>
#include <normscope/nets/net.hpp>

namespace normscope::nets {

/// `count` labels below `classes`, drawn evenly.
inline std::vector<std::int64_t> random_labels(std::size_t count, std::uint64_t classes, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::int64_t> labels(count);
  for (std::int64_t& label : labels) label = static_cast<std::int64_t>(random.below(classes));
  return labels;
}

/// The class of each row by textbook code in the type T, one row and one layer after the other.
template <typename T>
std::vector<std::int64_t> replay(const nets::Net& net, MatrixView<const double> x, bool backwards) {
  std::vector<std::int64_t> given;
  const auto linear = [&](const nets::Layer& layer, const std::vector<T>& in) {
    std::vector<T> out(layer.out, T(0));
    for (std::size_t o = 0; o < layer.out; ++o) {
      for (std::size_t i = 0; i < layer.in; ++i) {
        const std::size_t at = backwards ? layer.in - 1 - i : i;
        out[o] += static_cast<T>(layer.weight[o * layer.in + at]) * in[at];
      }
      out[o] += static_cast<T>(layer.bias[o]);
    }
    return out;
  };
  for (std::size_t row = 0; row < x.rows(); ++row) {
    std::vector<T> now(x.row(row).begin(), x.row(row).end());
    for (const nets::Layer& layer : net.layers) {
      now = linear(layer, now);
      T mean = 0;
      for (const T value : now) mean += value;
      mean /= static_cast<T>(now.size());
      T variance = 0;
      for (T& value : now) {
        value -= mean;
        variance += value * value;
      }
      const T deviation = std::sqrt(variance / static_cast<T>(now.size()));
      for (T& value : now) value /= deviation;
    }
    const std::vector<T> outputs = linear(net.head, now);
    given.push_back(net.classes[static_cast<std::size_t>(std::max_element(outputs.begin(), outputs.end()) -
                                                         outputs.begin())]);
  }
  return given;
}

}  // namespace normscope::nets
