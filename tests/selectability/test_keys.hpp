#pragma once

#include <cmath>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/view.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/selectability/select.hpp>

namespace normscope::selectability {

/// A set of keys of one width.
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

/// Subtracts the mean of every row, rounding once per entry.
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

/// The answer for each key.
inline std::vector<Selectability> answers(const Selection& selection) {
  std::vector<Selectability> result;
  for (const Verdict& verdict : selection.keys) result.push_back(verdict.answer);
  return result;
}

inline std::vector<Selectability> all(std::size_t count, Selectability answer) {
  return std::vector<Selectability>(count, answer);
}

/// Selectable: the strict vertices of a planar hull, without points that occur twice. Exact for small
/// integers.
inline std::vector<Selectability> planar_vertices(const Keys& points) {
  const std::size_t n = points.rows();
  const auto at = [&](std::size_t i) { return points.view().row(i); };
  std::vector<Selectability> result(n, Selectability::selectable);
  for (std::size_t i = 0; i < n; ++i) {
    // The directions from a vertex to the others span less than half a turn: for one of them every point lies
    // to its left or on its ray.
    bool vertex = false;
    for (std::size_t j = 0; j < n && !vertex; ++j) {
      const double x = at(j)[0] - at(i)[0];
      const double y = at(j)[1] - at(i)[1];
      if (j == i || (x == 0.0 && y == 0.0)) continue;
      vertex = true;
      for (std::size_t k = 0; k < n && vertex; ++k) {
        const double u = at(k)[0] - at(i)[0];
        const double v = at(k)[1] - at(i)[1];
        const double turn = x * v - y * u;
        if (k != i && (turn < 0.0 || (turn == 0.0 && x * u + y * v <= 0.0))) vertex = false;
      }
    }
    if (!vertex) result[i] = Selectability::unselectable;
  }
  return result;
}

}  // namespace normscope::selectability
