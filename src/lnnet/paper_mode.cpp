#include "paper_mode.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "head.hpp"
#include "line.hpp"
#include "projection.hpp"

namespace normscope::lnnet {
namespace {

const double root2 = std::sqrt(2.0);
const double root3 = std::sqrt(3.0);
const double root6 = std::sqrt(6.0);

/// b = U (−midpoint, radius).
std::vector<double> lift(double midpoint, double radius) {
  return {-midpoint / root2 + radius / root6, midpoint / root2 + radius / root6, -2.0 * radius / root6};
}

std::vector<double> readout() {
  return {1.0 / (root3 * root6), 1.0 / (root3 * root6), -2.0 / (root3 * root6)};
}

Layer paper_layer(const std::vector<double>* direction, const Fold& fold) {
  Layer layer{.in = direction != nullptr ? direction->size() : 3,
              .out = 3,
              .bias = lift(fold.midpoint, fold.radius),
              .activation = Activation::norm,
              .norm = {.width = 3, .eps = 0.0}};
  const std::vector<double> row =
      direction != nullptr ? *direction : std::vector{1.0 / 6.0, 1.0 / 6.0, -2.0 / 6.0};
  // The first layer has one factor of u₁, the others the product u₁ u₂ᵀ/√3, which is rational.
  const double factor = direction != nullptr ? 1.0 / root2 : 1.0;
  for (const double sign : {factor, -factor, 0.0}) {
    for (const double weight : row) layer.weight.push_back(sign * weight);
  }
  return layer;
}

/// The clusters that the algorithm still looks at, and how it picks two of them.
class Clusters {
 public:
  Clusters(const Samples& samples, std::vector<double> values)
      : classes(samples.classes), rows(samples.rows), p(std::move(values)) {}

  std::vector<std::uint32_t> classes;
  std::vector<std::size_t> rows;
  std::vector<double> p;

  /// The two smallest of the first class that has two, in the order of the class's smallest value;
  /// nothing when every class is one cluster.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> pick() const {
    std::vector<std::size_t> order = sorted();
    while (!order.empty()) {
      const std::size_t first = order.front();
      const auto second = std::find_if(order.begin() + 1, order.end(),
                                       [&](std::size_t k) { return classes[k] == classes[first]; });
      if (second != order.end()) return std::pair(first, *second);
      order.erase(order.begin());
    }
    return std::nullopt;
  }

  [[nodiscard]] std::size_t runs() const {
    std::vector<std::uint32_t> along;
    for (const std::size_t k : sorted()) along.push_back(classes[k]);
    return count_runs(along);
  }

  void remove(std::size_t index) {
    const auto at = static_cast<std::ptrdiff_t>(index);
    classes.erase(classes.begin() + at);
    rows.erase(rows.begin() + at);
    p.erase(p.begin() + at);
  }

 private:
  [[nodiscard]] std::vector<std::size_t> sorted() const {
    std::vector<std::size_t> order(p.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return std::pair(p[a], a) < std::pair(p[b], b); });
    return order;
  }
};

}  // namespace

void construct_paper(MatrixView<const double> x, const Samples& samples, const ConstructOptions& options,
                     const Progress& progress, Construction& construction) {
  const std::vector<double> rows = gather(x, samples.rows);
  const Projection projection = best_projection({rows.data(), samples.rows.size(), x.width()},
                                                samples.classes, options.seed, options.threads);
  Clusters clusters(samples, projection.values);
  // What the next layer reads of each cluster: its row, and then three neurons.
  std::vector<double> inputs = rows;
  std::size_t width = x.width();
  Net& net = construction.net;
  while (!(options.early_stop && clusters.runs() <= samples.names.size())) {
    const auto pair = clusters.pick();
    if (!pair) break;
    const auto [i, j] = *pair;
    Fold fold{.first = clusters.rows[i],
              .second = clusters.rows[j],
              .midpoint = (clusters.p[i] + clusters.p[j]) / 2.0,
              .radius = (clusters.p[j] - clusters.p[i]) / 2.0};
    net.layers.push_back(paper_layer(net.layers.empty() ? &projection.direction : nullptr, fold));
    Net layer;
    layer.layers = {net.layers.back()};
    layer.head = {.in = 3, .out = 1, .weight = readout(), .bias = {0.0}};
    const MatrixView<const double> view(inputs.data(), clusters.p.size(), width);
    clusters.p = evaluate(layer, view, 1);
    inputs = std::move(trace(layer, view, 1)[0]);
    width = 3;
    clusters.remove(i);
    inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(3 * i),
                 inputs.begin() + static_cast<std::ptrdiff_t>(3 * i + 3));
    fold.runs = clusters.runs();
    construction.folds.push_back(fold);
    progress("fold", net.layers.size(), samples.rows.size());
  }
  net.head =
      threshold_head(clusters.p, clusters.classes, net.layers.empty() ? projection.direction : readout(),
                     samples.names, net.classes);
}

}  // namespace normscope::lnnet
