#include "projection.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>

namespace normscope::nets {
namespace {

constexpr std::size_t directions = 16;

template <typename T>
double separation(const std::vector<T>& values, const std::vector<std::uint32_t>& classes) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  T closest = std::numeric_limits<double>::infinity();
  // Among equal values every pair counts, so neighbours of one value are compared with its first.
  for (std::size_t k = 1; k < order.size(); ++k) {
    if (classes[order[k]] != classes[order[k - 1]]) {
      closest = std::min(closest, values[order[k]] - values[order[k - 1]]);
    }
  }
  const T range = values[order.back()] - values[order.front()];
  return range > T(0.0) ? to_double(closest / range) : 0.0;
}

}  // namespace

template <typename T>
Projection<T> best_projection(MatrixView<const double> x, const std::vector<std::uint32_t>& classes,
                              std::uint64_t seed, unsigned threads) {
  Random random(seed);
  // Feature by feature, so that each row is read once for all directions.
  std::vector<std::array<double, directions>> weights(x.width());
  for (std::size_t d = 0; d < directions; ++d) {
    for (std::array<double, directions>& weight : weights) weight[d] = random.normal();
  }
  std::array<std::vector<T>, directions> all;
  for (std::vector<T>& values : all) values.resize(x.rows());
  parallel_for(x.rows(), 64, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      std::array<T, directions> sums{};
      for (std::size_t i = 0; i < x.width(); ++i) {
        const T feature = x.row(row)[i];
        for (std::size_t d = 0; d < directions; ++d) sums[d] += T(weights[i][d]) * feature;
      }
      for (std::size_t d = 0; d < directions; ++d) all[d][row] = sums[d];
    }
  });
  Projection<T> best;
  for (std::size_t d = 0; d < directions; ++d) {
    const double found = separation(all[d], classes);
    if (d > 0 && found <= best.separation) continue;
    best.direction.clear();
    for (const std::array<double, directions>& weight : weights) best.direction.push_back(weight[d]);
    best.values = std::move(all[d]);
    best.separation = found;
  }
  return best;
}

template Projection<double> best_projection(MatrixView<const double>, const std::vector<std::uint32_t>&,
                                            std::uint64_t, unsigned);
template Projection<DoubleDouble> best_projection(MatrixView<const double>, const std::vector<std::uint32_t>&,
                                                  std::uint64_t, unsigned);

}  // namespace normscope::nets
