#pragma once

#include <cmath>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/view.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/selectability/select.hpp>

namespace normscope::selectability {

/// Rows of one width that tests ask about.
struct Keys {
  std::vector<double> values{};
  std::size_t width = 1;

  [[nodiscard]] std::size_t rows() const { return values.size() / width; }
  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), rows(), width}; }
  [[nodiscard]] std::vector<double> row(std::size_t index) const {
    return {view().row(index).begin(), view().row(index).end()};
  }
  void add(const std::vector<double>& key) { values.insert(values.end(), key.begin(), key.end()); }
};

inline Keys normal_keys(std::size_t rows, std::size_t width, std::uint64_t seed, double deviation = 1.0) {
  Random random(seed);
  Keys keys{.values = std::vector<double>(rows * width), .width = width};
  for (double& value : keys.values) value = deviation * random.normal();
  return keys;
}

inline Keys normalized(Keys keys, double eps = 0.0, const std::vector<double>& gain = {},
                       const std::vector<double>& bias = {}) {
  const NormSpec spec{.width = keys.width, .eps = eps, .gain = gain, .bias = bias};
  const MatrixView<double> x(keys.values.data(), keys.rows(), keys.width);
  norm::forward(spec, x, x);
  return keys;
}

/// The mean taken out of every row, in one subtraction as a program would.
inline Keys projected(Keys keys) {
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    double mean = 0.0;
    for (std::size_t i = 0; i < keys.width; ++i)
      mean += keys.view().row(row)[i] / static_cast<double>(keys.width);
    for (std::size_t i = 0; i < keys.width; ++i) keys.values[row * keys.width + i] -= mean;
  }
  return keys;
}

/// A random convex combination of `parts` of the first `from` rows.
inline std::vector<double> mixture(const Keys& keys, std::size_t from, std::size_t parts, Random& random) {
  std::vector<double> result(keys.width);
  std::vector<double> weights(parts);
  double total = 0.0;
  for (double& weight : weights) total += weight = -std::log(1.0 - random.uniform());
  for (const double weight : weights) {
    const std::size_t row = random.below(from);
    for (std::size_t i = 0; i < keys.width; ++i) result[i] += weight / total * keys.view().row(row)[i];
  }
  return result;
}

}  // namespace normscope::selectability
