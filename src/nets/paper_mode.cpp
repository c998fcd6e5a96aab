#include "paper_mode.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "head.hpp"
#include "line.hpp"
#include "predict.hpp"
#include "projection.hpp"

namespace normscope::nets {

namespace {

/// The square roots in the two columns of U.
template <typename T>
struct Roots {
  T two = square_root(2.0);
  T three = square_root(3.0);
  T six = square_root(6.0);

 private:
  static T square_root(double value) {
    using std::sqrt;
    return sqrt(T(value));
  }
};

/// b = U (−midpoint, radius).
template <typename T>
std::array<T, 3> lift(const Crease<T>& fold) {
  const Roots<T> root;
  const T across = fold.midpoint / root.two;
  const T along = fold.radius / root.six;
  return {-across + along, across + along, T(-2.0) * fold.radius / root.six};
}

/// u₂/√3.
template <typename T>
std::vector<T> readout() {
  const Roots<T> root;
  const T unit = T(1.0) / (root.three * root.six);
  return {unit, unit, T(-2.0) / (root.three * root.six)};
}

/// The row that the first two neurons read, once with each sign: of the input in the first layer, with its
/// factor of u₁; of three neurons after it, where u₁ u₂ᵀ/√3 is rational.
template <typename T>
std::vector<T> read_row(const std::vector<double>* direction) {
  if (direction == nullptr) return {T(1.0) / T(6.0), T(1.0) / T(6.0), T(-2.0) / T(6.0)};
  const Roots<T> root;
  std::vector<T> row;
  for (const double weight : *direction) row.push_back(T(weight) * (T(1.0) / root.two));
  return row;
}

template <typename T>
Layer paper_layer(const std::vector<T>& row, const Crease<T>& fold) {
  const std::array<T, 3> bias = lift(fold);
  std::vector<T> weight = row;
  for (const T& value : row) weight.push_back(-value);
  weight.resize(3 * row.size(), 0.0);
  return norm_layer<T>(weight, {bias[0], bias[1], bias[2]});
}

/// The layer's output for a cluster whose input is `x`.
template <typename T>
std::array<T, 3> paper_step(const std::vector<T>& row, const Crease<T>& fold, std::span<const T> x) {
  using std::sqrt;
  std::array<T, 3> y = lift(fold);
  for (std::size_t i = 0; i < row.size(); ++i) {
    y[0] = y[0] + row[i] * x[i];
    y[1] = y[1] - row[i] * x[i];
  }
  const T mean = (y[0] + y[1] + y[2]) / T(3.0);
  for (T& value : y) value = value - mean;
  const T length = sqrt((y[0] * y[0] + y[1] * y[1] + y[2] * y[2]) / T(3.0));
  for (T& value : y) value = value / length;
  return y;
}

/// The remaining clusters, and the selection of a pair.
template <typename T>
class Clusters {
 public:
  Clusters(const Samples& samples, std::vector<T> values)
      : classes(samples.classes), rows(samples.rows), p(std::move(values)) {}

  std::vector<std::uint32_t> classes;
  std::vector<std::size_t> rows;
  std::vector<T> p;

  /// The two smallest of the first class that has two, in the order of the class's smallest value; empty if
  /// every class is one cluster.
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

template <typename T>
Net construct_paper(MatrixView<const double> x, const Samples& samples, const ConstructOptions& options,
                    const Progress& progress, std::vector<Fold>& folds) {
  const std::vector<double> rows = gather(x, samples.rows);
  const Projection<T> projection = best_projection<T>({rows.data(), samples.rows.size(), x.width()},
                                                      samples.classes, options.seed, options.threads);
  Clusters<T> clusters(samples, projection.values);
  // Input of the next layer for each cluster: its row, and then three neurons.
  std::vector<T> inputs(rows.begin(), rows.end());
  std::size_t width = x.width();
  const std::vector<T> out = readout<T>();
  Net net{.precision = precision_of<T>};
  while (!(options.early_stop && clusters.runs() <= samples.names.size())) {
    const auto pair = clusters.pick();
    if (!pair) break;
    const auto [i, j] = *pair;
    Crease<T> fold{.first = clusters.rows[i],
                   .second = clusters.rows[j],
                   .midpoint = (clusters.p[i] + clusters.p[j]) / T(2.0),
                   .radius = (clusters.p[j] - clusters.p[i]) / T(2.0)};
    const std::vector<T> row = read_row<T>(net.layers.empty() ? &projection.direction : nullptr);
    net.layers.push_back(paper_layer(row, fold));
    std::vector<T> outputs;
    for (std::size_t k = 0; k < clusters.p.size(); ++k) {
      const std::array<T, 3> y = paper_step(row, fold, std::span<const T>(inputs).subspan(k * width, width));
      clusters.p[k] = out[0] * y[0] + out[1] * y[1] + out[2] * y[2];
      if (k != i) outputs.insert(outputs.end(), y.begin(), y.end());
    }
    inputs = std::move(outputs);
    width = 3;
    clusters.remove(i);
    fold.runs = clusters.runs();
    folds.push_back(fold.stated());
    progress("fold", net.layers.size(), samples.rows.size());
  }
  const std::vector<T> direct(projection.direction.begin(), projection.direction.end());
  net.head = threshold_head(clusters.p, clusters.classes, net.layers.empty() ? direct : out, samples.names,
                            net.classes);
  return net;
}

template Net construct_paper<double>(MatrixView<const double>, const Samples&, const ConstructOptions&,
                                     const Progress&, std::vector<Fold>&);
template Net construct_paper<DoubleDouble>(MatrixView<const double>, const Samples&, const ConstructOptions&,
                                           const Progress&, std::vector<Fold>&);

}  // namespace normscope::nets
