#include <normscope/nets/evaluate.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::nets {
namespace {

/// Number of rows carried through all layers together. Their values are stored feature by feature, so that
/// every loop over `lanes` accesses contiguous memory.
constexpr std::size_t lanes = 64;
template <typename T>
using Lane = std::array<T, lanes>;
template <typename T>
using Columns = std::vector<Lane<T>>;

template <typename T>
T number(const std::vector<double>& high, const std::vector<double>& low, std::size_t i) {
  if constexpr (std::is_same_v<T, double>) {
    return high[i];
  } else {
    return {high[i], low[i]};
  }
}

template <typename T>
void apply_linear(const Layer& layer, const Columns<T>& x, Columns<T>& y) {
  y.resize(layer.out);
  for (std::size_t o = 0; o < layer.out; ++o) {
    Lane<T> sum;
    sum.fill(number<T>(layer.bias, layer.bias_low, o));
    for (std::size_t i = 0; i < layer.in; ++i) {
      const T weight = number<T>(layer.weight, layer.weight_low, o * layer.in + i);
      for (std::size_t r = 0; r < lanes; ++r) sum[r] += weight * x[i][r];
    }
    y[o] = sum;
  }
}

template <typename T>
void subtract_mean(Lane<T>* y, std::size_t width) {
  Lane<T> mean{};
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t r = 0; r < lanes; ++r) mean[r] += y[i][r];
  }
  const T count = static_cast<double>(width);
  for (std::size_t r = 0; r < lanes; ++r) mean[r] /= count;
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t r = 0; r < lanes; ++r) y[i][r] -= mean[r];
  }
}

double times_power(double value, int exponent) { return std::scalbn(value, exponent); }
DoubleDouble times_power(const DoubleDouble& value, int exponent) {
  return {std::scalbn(value.high, exponent), std::scalbn(value.low, exponent)};
}

/// Range of mean squares without overflow or underflow.
constexpr double least_square = 0x1p-900;
constexpr double largest_square = 0x1p900;

/// Normalizes the deviations of one row in a block whose mean square is outside that range, after division by
/// a power of two.
template <typename T>
void normalize_apart(Lane<T>* block, std::size_t width, std::size_t r, const T& count, const T& eps) {
  double largest = 0.0;
  for (std::size_t i = 0; i < width; ++i) largest = std::max(largest, std::abs(to_double(block[i][r])));
  // A block without deviation is already zero.
  if (largest == 0.0) return;
  // If eps dominates the deviations, it must stay in range too.
  const int exponent = eps > T(0.0) ? std::max(std::ilogb(largest), -400) : std::ilogb(largest);
  T square = 0.0;
  for (std::size_t i = 0; i < width; ++i) {
    block[i][r] = times_power(block[i][r], -exponent);
    square += block[i][r] * block[i][r];
  }
  using std::sqrt;
  const T length = sqrt(square / count + times_power(eps, -2 * exponent));
  for (std::size_t i = 0; i < width; ++i) block[i][r] /= length;
}

template <typename T>
void apply_norm(const NormSpec& norm, Columns<T>& y) {
  using std::sqrt;
  const std::size_t width = norm.block_width();
  const T count = norm.squared_radius();
  const T eps = norm.eps;
  for (std::size_t begin = 0; begin < norm.width; begin += width) {
    Lane<T>* const block = y.data() + begin;
    if (norm.centers()) subtract_mean(block, width);
    Lane<T> length{};
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t r = 0; r < lanes; ++r) length[r] += block[i][r] * block[i][r];
    }
    for (std::size_t r = 0; r < lanes; ++r) length[r] = length[r] / count + eps;
    for (std::size_t r = 0; r < lanes; ++r) {
      const double square = to_double(length[r]);
      if (square >= least_square && square <= largest_square) continue;
      normalize_apart(block, width, r, count, eps);
      length[r] = 1.0;
    }
    for (std::size_t r = 0; r < lanes; ++r) length[r] = sqrt(length[r]);
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t r = 0; r < lanes; ++r) block[i][r] /= length[r];
    }
  }
  for (std::size_t i = 0; i < norm.width && !(norm.gain.empty() && norm.bias.empty()); ++i) {
    const T gain = norm.gain_at(i);
    const T bias = norm.bias_at(i);
    for (std::size_t r = 0; r < lanes; ++r) y[i][r] = y[i][r] * gain + bias;
  }
}

template <typename T>
void apply_activation(const Layer& layer, Columns<T>& y) {
  switch (layer.activation) {
    case Activation::none: return;
    case Activation::norm: return apply_norm(layer.norm, y);
    case Activation::relu:
      for (Lane<T>& lane : y) {
        for (T& value : lane) value = value < T(0.0) ? T(0.0) : value;
      }
      return;
    case Activation::gelu:
      if constexpr (std::is_same_v<T, double>) {
        for (Lane<T>& lane : y) {
          for (T& value : lane) value = 0.5 * value * std::erfc(-value * 0.70710678118654752440);
        }
      }
  }
}

/// Rows [begin, begin + count) of `x` as a block; lanes after the last row repeat it.
template <typename T>
Columns<T> load(MatrixView<const double> x, std::size_t begin, std::size_t count) {
  Columns<T> block(x.width());
  for (std::size_t r = 0; r < lanes; ++r) {
    const std::span<const double> row = x.row(begin + std::min(r, count - 1));
    for (std::size_t i = 0; i < x.width(); ++i) block[i][r] = row[i];
  }
  return block;
}

template <typename T, typename Y>
void store(const Columns<T>& block, std::size_t begin, std::size_t count, std::vector<Y>& y) {
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      if constexpr (std::is_same_v<T, Y>) {
        y[(begin + r) * block.size() + i] = block[i][r];
      } else {
        y[(begin + r) * block.size() + i] = to_double(block[i][r]);
      }
    }
  }
}

void validate_input(const Net& net, MatrixView<const double> x) {
  validate(net);
  if (x.width() != net.in()) {
    throw Error(ErrorCode::Shape,
                fmt::format("net: x has {} features, the net reads {}", x.width(), net.in()));
  }
}

/// Calls body(begin, count) for blocks of rows on all threads, and reports `progress` between them.
template <typename Body>
void for_each_block(std::size_t rows, unsigned threads, const Progress& progress, const Body& body) {
  const std::size_t blocks = (rows + lanes - 1) / lanes;
  const std::size_t round = 4 * static_cast<std::size_t>(thread_count(threads));
  for (std::size_t first = 0; first < blocks; first += round) {
    progress("evaluate", first * lanes, rows);
    parallel_for(std::min(round, blocks - first), 1, threads, [&](std::size_t from, std::size_t to) {
      for (std::size_t b = first + from; b < first + to; ++b) {
        body(b * lanes, std::min(lanes, rows - b * lanes));
      }
    });
  }
  progress("evaluate", rows, rows);
}

/// The head's outputs, in the type of the computation or rounded.
template <typename T, typename Y>
std::vector<Y> outputs(const Net& net, MatrixView<const double> x, unsigned threads,
                       const Progress& progress) {
  std::vector<Y> all(x.rows() * net.out());
  for_each_block(x.rows(), threads, progress, [&](std::size_t begin, std::size_t count) {
    Columns<T> now = load<T>(x, begin, count);
    Columns<T> next;
    for (const Layer& layer : net.layers) {
      apply_linear(layer, now, next);
      apply_activation(layer, next);
      now.swap(next);
    }
    apply_linear(net.head, now, next);
    store(next, begin, count, all);
  });
  return all;
}

template <typename T>
std::vector<std::int64_t> labels_in(const Net& net, MatrixView<const double> x, unsigned threads,
                                    const Progress& progress, Overflow overflow) {
  const std::vector<T> all = outputs<T, T>(net, x, threads, progress);
  std::vector<std::int64_t> labels(x.rows());
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * net.out());
    const auto end = begin + static_cast<std::ptrdiff_t>(net.out());
    if (overflow == Overflow::error &&
        !std::all_of(begin, end, [](const T& output) { return std::isfinite(to_double(output)); })) {
      throw Error(
          ErrorCode::Argument,
          fmt::format("net: row {} is too large or too small for it: its numbers leave the range of float64",
                      row));
    }
    const auto best = std::max_element(begin, end) - begin;
    labels[row] = net.classes.empty() ? best : net.classes[static_cast<std::size_t>(best)];
  }
  return labels;
}

template <typename T>
std::vector<std::vector<double>> trace_in(const Net& net, MatrixView<const double> x, unsigned threads) {
  std::vector<std::vector<double>> activations;
  for (const Layer& layer : net.layers) activations.emplace_back(x.rows() * layer.out);
  for_each_block(x.rows(), threads, {}, [&](std::size_t begin, std::size_t count) {
    Columns<T> now = load<T>(x, begin, count);
    Columns<T> next;
    for (std::size_t l = 0; l < net.layers.size(); ++l) {
      apply_linear(net.layers[l], now, next);
      apply_activation(net.layers[l], next);
      store(next, begin, count, activations[l]);
      now.swap(next);
    }
  });
  return activations;
}

}  // namespace

std::vector<double> evaluate(const Net& net, MatrixView<const double> x, unsigned threads,
                             const Progress& progress) {
  validate_input(net, x);
  return net.precision == Precision::float64 ? outputs<double, double>(net, x, threads, progress)
                                             : outputs<DoubleDouble, double>(net, x, threads, progress);
}

std::vector<std::int64_t> labels(const Net& net, MatrixView<const double> x, unsigned threads,
                                 const Progress& progress, Overflow overflow) {
  validate_input(net, x);
  return net.precision == Precision::float64 ? labels_in<double>(net, x, threads, progress, overflow)
                                             : labels_in<DoubleDouble>(net, x, threads, progress, overflow);
}

std::vector<std::vector<double>> trace(const Net& net, MatrixView<const double> x, unsigned threads) {
  validate_input(net, x);
  return net.precision == Precision::float64 ? trace_in<double>(net, x, threads)
                                             : trace_in<DoubleDouble>(net, x, threads);
}

}  // namespace normscope::nets
