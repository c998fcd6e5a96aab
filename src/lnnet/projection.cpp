#include "projection.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <normscope/core/random.hpp>
#include <normscope/lnnet/net.hpp>

namespace normscope::lnnet {
namespace {

constexpr std::size_t directions = 16;

double separation(const std::vector<double>& values, const std::vector<std::uint32_t>& classes) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  double closest = std::numeric_limits<double>::infinity();
  // Among equal values every pair counts, so neighbours of one value are compared with its first.
  for (std::size_t k = 1; k < order.size(); ++k) {
    if (classes[order[k]] != classes[order[k - 1]]) {
      closest = std::min(closest, values[order[k]] - values[order[k - 1]]);
    }
  }
  const double range = values[order.back()] - values[order.front()];
  return range > 0.0 ? closest / range : 0.0;
}

}  // namespace

Projection best_projection(MatrixView<const double> x, const std::vector<std::uint32_t>& classes,
                           std::uint64_t seed, unsigned threads) {
  Random random(seed);
  // All directions at once: a linear net reads each row once.
  Net net;
  net.head = {.in = x.width(), .out = directions};
  for (std::size_t i = 0; i < directions * x.width(); ++i) net.head.weight.push_back(random.normal());
  net.head.bias.assign(directions, 0.0);
  const std::vector<double> all = evaluate(net, x, threads);
  Projection best;
  for (std::size_t d = 0; d < directions; ++d) {
    std::vector<double> values(x.rows());
    for (std::size_t row = 0; row < x.rows(); ++row) values[row] = all[row * directions + d];
    const double found = separation(values, classes);
    if (d > 0 && found <= best.separation) continue;
    const auto begin = net.head.weight.begin() + static_cast<std::ptrdiff_t>(d * x.width());
    best = {{begin, begin + static_cast<std::ptrdiff_t>(x.width())}, std::move(values), found};
  }
  return best;
}

}  // namespace normscope::lnnet
