#include "kernel_jobs.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::norm::detail {
namespace {

/// f and its first two derivatives, each within 4 u of its largest value, and 0 or ±1 where |t| is infinite.
struct Activation {
  double (*value)(double t);
  double (*slope)(double t);
  double (*curvature)(double t);
};

/// 1 − tanh² = 4 e^(−2|t|)/(1 + e^(−2|t|))², without cancellation.
double tanh_slope(double t) {
  const double e = std::exp(-2.0 * std::abs(t));
  return 4.0 * e / ((1.0 + e) * (1.0 + e));
}

/// f = tanh [Zhu et al. 2025].
const Activation dyt{.value = [](double t) { return std::tanh(t); },
                     .slope = tanh_slope,
                     .curvature = [](double t) { return -2.0 * std::tanh(t) * tanh_slope(t); }};

/// 2/√π
constexpr double steepest = 1.1283791670955126;
/// exp(−t²) is 0 in double beyond.
constexpr double farthest = 28.0;

/// 2/√π e^(−t²); the rounding of t² would be multiplied by t².
double erf_slope(double t) {
  if (std::abs(t) > farthest) return 0.0;
  const double square = t * t;
  return steepest * std::exp(-square) * (1.0 - std::fma(t, t, -square));
}

/// f = erf [Chen et al. 2025].
const Activation derf{
    .value = [](double t) { return std::erf(t); },
    .slope = erf_slope,
    .curvature = [](double t) { return std::abs(t) > farthest ? 0.0 : -2.0 * t * erf_slope(t); }};

/// Entries a thread processes at a time.
constexpr std::size_t entries_a_task = std::size_t{1} << 13U;
/// Largest number of ranges of rows whose gradients are summed separately; it must not depend on the threads.
constexpr std::size_t most_ranges = 64;
constexpr std::size_t rows_a_range = 64;

std::size_t rows_a_task(std::size_t width) { return std::max<std::size_t>(1, entries_a_task / width); }

/// f of an elementwise kind.
///
/// Requires  is_elementwise(kind)
const Activation& activation(NormKind kind) {
  switch (kind) {
    case NormKind::dyt: return dyt;
    case NormKind::derf: return derf;
    case NormKind::layer:
    case NormKind::rms:
    case NormKind::spherical: break;
  }
  throw Error(ErrorCode::Argument,
              fmt::format("elementwise: the norm is {}, which normalizes", to_string(kind)));
}

/// αx + s, rounded once.
template <typename Values>
double argument(const BasicNorm<Values>& norm, double x) {
  return std::fma(norm.alpha, x, norm.shift);
}

/// The gradients of gain, bias, α and s over a range of rows.
struct Sums {
  explicit Sums(std::size_t width) : gain(width), bias(width) {}
  std::vector<CompensatedSum> gain;
  std::vector<CompensatedSum> bias;
  CompensatedSum alpha;
  CompensatedSum shift;

  void add(const Sums& other) {
    for (std::size_t i = 0; i < gain.size(); ++i) gain[i].add(other.gain[i].value());
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i].add(other.bias[i].value());
    alpha.add(other.alpha.value());
    shift.add(other.shift.value());
  }
};

template <typename W>
void store(const std::vector<CompensatedSum>& sums, std::span<W> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<W>(sums[i].value());
}

/// One row of gradients. `sums` may be null.
template <typename T>
void backward_row(const Layer<T>& layer, const Activation& f, std::span<const T> x, std::span<const T> dy,
                  std::span<T> dx, Sums* sums) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = number(x[i]);
    const double upstream = number(dy[i]);
    const double t = argument(layer, at);
    const double inner = upstream * layer.gain_at(i) * f.slope(t);
    if (sums != nullptr) {
      sums->gain[i].add(upstream * f.value(t));
      sums->bias[i].add(upstream);
      sums->alpha.add(inner * at);
      sums->shift.add(inner);
    }
    put(layer.alpha * inner, dx[i]);
  }
}

/// to_row(row) for all rows, among threads.
template <typename ToRow>
void each_row(std::size_t rows, std::size_t width, unsigned threads, const ToRow& to_row) {
  parallel_for(rows, rows_a_task(width), threads, [&](std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row) to_row(row);
  });
}

}  // namespace

template <typename T>
void elementwise_forward(const ForwardJob<T>& job, unsigned threads) {
  const Layer<T>& layer = job.layer;
  const Activation& f = activation(layer.kind);
  const bool adds = job.residual.data() != nullptr;
  each_row(job.x.rows(), layer.width, threads, [&](std::size_t row) {
    for (std::size_t i = 0; i < layer.width; ++i) {
      T x = job.x.row(row)[i];
      if (adds) {
        put(number(x) + number(job.residual.row(row)[i]), x);
        job.sum.row(row)[i] = x;
      }
      put(layer.gain_at(i) * f.value(argument(layer, number(x))) + layer.bias_at(i), job.y.row(row)[i]);
    }
  });
}

template <typename T>
void elementwise_backward(const BackwardJob<T>& job, const Gradients<T>& gradients, unsigned threads) {
  const Layer<T>& layer = job.layer;
  const Activation& f = activation(layer.kind);
  const std::size_t rows = job.x.rows();
  const auto to_row = [&](std::size_t row, Sums* sums) {
    backward_row<T>(layer, f, job.x.row(row), job.dy.row(row), job.dx.row(row), sums);
  };
  if (gradients.gain.empty() && gradients.bias.empty() && gradients.alpha == nullptr &&
      gradients.shift == nullptr) {
    return each_row(rows, layer.width, threads, [&](std::size_t row) { to_row(row, nullptr); });
  }
  const std::size_t range = std::max(rows_a_range, (rows + most_ranges - 1) / most_ranges);
  const std::size_t ranges = std::max<std::size_t>(1, (rows + range - 1) / range);
  std::vector<Sums> sums(ranges, Sums(layer.width));
  parallel_for(ranges, 1, threads, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      for (std::size_t row = r * range; row < std::min(rows, (r + 1) * range); ++row) to_row(row, &sums[r]);
    }
  });
  for (std::size_t r = 1; r < ranges; ++r) sums[0].add(sums[r]);
  store(sums[0].gain, gradients.gain);
  store(sums[0].bias, gradients.bias);
  if (gradients.alpha != nullptr) *gradients.alpha = static_cast<Wide<T>>(sums[0].alpha.value());
  if (gradients.shift != nullptr) *gradients.shift = static_cast<Wide<T>>(sums[0].shift.value());
}

void elementwise_jacobian(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> v,
                          MatrixView<double> out, unsigned threads) {
  const Activation& f = activation(spec.kind);
  each_row(x.rows(), spec.width, threads, [&](std::size_t row) {
    for (std::size_t i = 0; i < spec.width; ++i) {
      const double slope = spec.gain_at(i) * spec.alpha * f.slope(argument(spec, x.row(row)[i]));
      out.row(row)[i] = slope * v.row(row)[i];
    }
  });
}

void elementwise_second(const NormSpec& spec, MatrixView<const double> x, MatrixView<const double> u,
                        MatrixView<const double> v, MatrixView<double> out, unsigned threads) {
  const Activation& f = activation(spec.kind);
  each_row(x.rows(), spec.width, threads, [&](std::size_t row) {
    for (std::size_t i = 0; i < spec.width; ++i) {
      const double bend =
          spec.gain_at(i) * spec.alpha * spec.alpha * f.curvature(argument(spec, x.row(row)[i]));
      out.row(row)[i] = bend * u.row(row)[i] * v.row(row)[i];
    }
  });
}

double elementwise_curvature(const NormSpec& spec, std::span<const double> x) {
  const Activation& f = activation(spec.kind);
  CompensatedSum sum;
  for (std::size_t i = 0; i < spec.width; ++i) {
    const double bend = spec.gain_at(i) * spec.alpha * spec.alpha * f.curvature(argument(spec, x[i]));
    sum.add(bend * bend);
  }
  return sum.value();
}

#define NORMSCOPE_ELEMENTWISE(T)                                        \
  template void elementwise_forward<T>(const ForwardJob<T>&, unsigned); \
  template void elementwise_backward<T>(const BackwardJob<T>&, const Gradients<T>&, unsigned);
NORMSCOPE_ELEMENTWISE(double)
NORMSCOPE_ELEMENTWISE(float)
NORMSCOPE_ELEMENTWISE(Bfloat16)
NORMSCOPE_ELEMENTWISE(Float16)
#undef NORMSCOPE_ELEMENTWISE

}  // namespace normscope::norm::detail
