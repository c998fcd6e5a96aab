#include "modes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/text.hpp>

#include "line.hpp"

namespace normscope::nets {
namespace {

void check_input(MatrixView<const double> x, std::span<const std::int64_t> labels) {
  if (x.rows() == 0 || x.width() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("construct: x is {} x {}, expected at least one row and one feature", x.rows(),
                            x.width()));
  }
  if (labels.size() != x.rows()) {
    throw Error(ErrorCode::Shape,
                fmt::format("construct: x has {} rows, there are {} labels", x.rows(), labels.size()));
  }
  for (std::size_t row = 0; row < x.rows(); ++row) {
    for (std::size_t i = 0; i < x.width(); ++i) {
      if (!std::isfinite(x.row(row)[i])) {
        throw Error(ErrorCode::Argument, fmt::format("construct: x[{}][{}] is {}, expected a finite number",
                                                     row, i, shown(x.row(row)[i])));
      }
    }
  }
}

std::uint64_t hash(std::span<const double> row) {
  std::uint64_t state = 0x9e3779b97f4a7c15ULL;
  for (const double value : row) {
    const double plain = value + 0.0;  // -0 is 0
    std::uint64_t word = 0;
    std::memcpy(&word, &plain, sizeof word);
    state = (state ^ word) * 0xbf58476d1ce4e5b9ULL;
    state ^= state >> 29;
  }
  return state;
}

bool equal(std::span<const double> a, std::span<const double> b) {
  return std::equal(a.begin(), a.end(), b.begin());
}

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

template <typename T>
struct Extent {
  std::uint32_t label = 0;
  T least = std::numeric_limits<double>::infinity();
  T most = -std::numeric_limits<double>::infinity();
  T sum = 0.0;
  double count = 0.0;

  [[nodiscard]] T mean() const { return sum / T(count); }
};

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

/// The line after the first layer, which folds the projection itself.
template <typename T>
Line<T> first_line(MatrixView<const double> x, const Samples& samples, const Projection<T>& projection,
                   double kappa) {
  std::vector<std::size_t> order(x.rows());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::vector<T>& u = projection.values;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return u[a] < u[b] || (!(u[b] < u[a]) && a < b); });
  std::vector<T> ascending;
  std::vector<std::uint32_t> classes;
  for (const std::size_t sample : order) {
    ascending.push_back(u[sample]);
    classes.push_back(samples.classes[sample]);
  }
  const FoldPlan<T> plan = plan_fold<T>(ascending, classes, samples.names.size(), kappa);
  Crease<T> fold{.midpoint = plan.midpoint, .radius = plan.radius, .gap = plan.gap};
  std::size_t absorbed = no_row;
  if (plan.merges()) {
    absorbed = order[plan.first];
    fold.first = samples.rows[absorbed];
    fold.second = samples.rows[order[plan.second]];
  }
  std::vector<T> q(x.rows());
  for (std::size_t row = 0; row < x.rows(); ++row)
    q[row] = first_step(x.row(row), projection.direction, fold);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return q[a] > q[b] || (!(q[b] > q[a]) && a < b); });
  Line<T> line;
  for (const std::size_t sample : order) {
    if (sample == absorbed) continue;
    line.q.push_back(q[sample]);
    line.classes.push_back(samples.classes[sample]);
    line.rows.push_back(samples.rows[sample]);
  }
  line.runs = count_runs(line.classes);
  fold.runs = line.runs;
  line.folds = {fold};
  return line;
}

/// Whether the line was folded completely.
template <typename T>
bool fold_all(Line<T>& line, const FoldRules& rules, std::size_t save_every, const SaveLine<T>& save,
              const Progress& progress) {
  const std::size_t expected = line.q.size() + line.folds.size();
  constexpr std::size_t step = 1024;
  for (std::size_t saved = line.folds.size();;) {
    const LineState state = advance(line, rules, step);
    if (state != LineState::folding) return state == LineState::done;
    // A tie that is broken repeatedly would never end.
    if (line.folds.size() > 3 * expected) return false;
    try {
      progress("fold", line.folds.size(), expected);
    } catch (const Error&) {
      save(line);
      throw;
    }
    if (line.folds.size() - saved >= save_every) {
      save(line);
      saved = line.folds.size();
    }
  }
}

}  // namespace

Samples distinct_samples(MatrixView<const double> x, std::span<const std::int64_t> labels,
                         bool first_label_wins) {
  check_input(x, labels);
  Samples samples;
  samples.wanted.assign(labels.begin(), labels.end());
  std::unordered_multimap<std::uint64_t, std::size_t> seen;
  seen.reserve(x.rows());
  for (std::size_t row = 0; row < x.rows(); ++row) {
    const std::uint64_t key = hash(x.row(row));
    const auto [begin, end] = seen.equal_range(key);
    const auto same =
        std::find_if(begin, end, [&](const auto& entry) { return equal(x.row(entry.second), x.row(row)); });
    if (same == end) {
      seen.emplace(key, row);
      samples.rows.push_back(row);
      continue;
    }
    const std::int64_t first = samples.wanted[same->second];
    if (first == labels[row]) continue;
    if (!first_label_wins) {
      throw Error(
          ErrorCode::Argument,
          fmt::format("construct: rows {} and {} are equal, their labels are {} and {}; expected one label "
                      "a sample",
                      same->second, row, first, labels[row]));
    }
    samples.wanted[row] = first;
    ++samples.relabelled;
  }
  samples.names = samples.wanted;
  std::sort(samples.names.begin(), samples.names.end());
  samples.names.erase(std::unique(samples.names.begin(), samples.names.end()), samples.names.end());
  for (const std::size_t row : samples.rows) {
    const auto name = std::lower_bound(samples.names.begin(), samples.names.end(), samples.wanted[row]);
    samples.classes.push_back(static_cast<std::uint32_t>(name - samples.names.begin()));
  }
  return samples;
}

std::vector<double> gather(MatrixView<const double> x, const std::vector<std::size_t>& rows) {
  std::vector<double> values;
  values.reserve(rows.size() * x.width());
  for (const std::size_t row : rows) values.insert(values.end(), x.row(row).begin(), x.row(row).end());
  return values;
}

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

template <typename T>
Layer threshold_head(const std::vector<T>& values, const std::vector<std::uint32_t>& classes,
                     const std::vector<T>& readout, const std::vector<std::int64_t>& names,
                     std::vector<std::int64_t>& order) {
  std::vector<Extent<T>> extents(names.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    Extent<T>& extent = extents[classes[k]];
    extent.label = classes[k];
    extent.least = std::min(extent.least, values[k]);
    extent.most = std::max(extent.most, values[k]);
    extent.sum += values[k];
    extent.count += 1.0;
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent<T>& a, const Extent<T>& b) { return a.mean() < b.mean(); });
  std::vector<T> weight;
  std::vector<T> bias;
  T thresholds = 0.0;
  order.clear();
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (k > 0) {
      const Extent<T>& below = extents[k - 1];
      const Extent<T>& above = extents[k];
      thresholds += below.most < above.least ? below.most + (above.least - below.most) / T(2.0)
                                             : (below.mean() + above.mean()) / T(2.0);
    }
    for (const T& value : readout) weight.push_back(T(static_cast<double>(k)) * value);
    bias.push_back(-thresholds);
    order.push_back(names[extents[k].label]);
  }
  return affine_layer(weight, bias);
}

template Layer threshold_head(const std::vector<double>&, const std::vector<std::uint32_t>&,
                              const std::vector<double>&, const std::vector<std::int64_t>&,
                              std::vector<std::int64_t>&);
template Layer threshold_head(const std::vector<DoubleDouble>&, const std::vector<std::uint32_t>&,
                              const std::vector<DoubleDouble>&, const std::vector<std::int64_t>&,
                              std::vector<std::int64_t>&);

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

template <typename T>
StableAttempt construct_stable(MatrixView<const double> x, const Samples& samples, const StablePlan& plan,
                               std::optional<Line<T>> resumed, const SaveLine<T>& save,
                               const Progress& progress) {
  const Projection<T> projection = best_projection<T>(x, samples.classes, plan.seed, plan.threads);
  StableAttempt attempt{.separable = projection.separation > 0.0};
  if (!attempt.separable) return attempt;
  Line<T> line = resumed ? std::move(*resumed) : first_line(x, samples, projection, plan.kappa);
  const FoldRules rules{samples.names.size(), plan.kappa, plan.early_stop, plan.threads};
  if (!fold_all(line, rules, plan.save_every, save, progress)) return attempt;
  Net net{.precision = precision_of<T>};
  net.layers.push_back(first_layer(projection.direction, line.folds.front()));
  for (std::size_t l = 1; l < line.folds.size(); ++l) net.layers.push_back(fold_layer(line.folds[l]));
  net.head = threshold_head(line.q, line.classes, std::vector<T>{0.0, 0.0, 1.0}, samples.names, net.classes);
  attempt.net = std::move(net);
  for (const Crease<T>& fold : line.folds) attempt.folds.push_back(fold.stated());
  return attempt;
}

template StableAttempt construct_stable(MatrixView<const double>, const Samples&, const StablePlan&,
                                        std::optional<Line<double>>, const SaveLine<double>&,
                                        const Progress&);
template StableAttempt construct_stable(MatrixView<const double>, const Samples&, const StablePlan&,
                                        std::optional<Line<DoubleDouble>>, const SaveLine<DoubleDouble>&,
                                        const Progress&);

}  // namespace normscope::nets
