#include <normscope/norm/kernels.hpp>

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

#include "elementwise.hpp"
#include "kernel_jobs.hpp"
#include "slices.hpp"

namespace normscope::norm {
namespace {

/// Bytes of a result beyond which no cache keeps it until it is read.
constexpr std::size_t bytes_beyond_caches = std::size_t{1} << 23U;
/// Bytes of a result that stay in a core's cache.
constexpr std::size_t bytes_at_hand = std::size_t{1} << 20U;
/// Rows whose gradients are summed in Wide<T> before they are added in double.
constexpr std::size_t rows_a_run = 64;
/// Largest number of pieces in which gradients are summed; it must not depend on the number of threads.
constexpr std::size_t most_panels = 64;

template <typename T>
void check_parameter(std::string_view who, std::string_view what, std::span<T> values, std::size_t width) {
  if (values.empty() || values.size() == width) return;
  throw Error(ErrorCode::Shape,
              fmt::format("{}: {} has {} entries, width is {}", who, what, values.size(), width));
}

template <typename Values>
void check_layer(std::string_view who, const BasicNorm<Values>& layer) {
  validate({.kind = layer.kind,
            .width = layer.width,
            .groups = layer.groups,
            .eps = layer.eps,
            .alpha = layer.alpha,
            .shift = layer.shift});
  check_parameter(who, "gain", layer.gain, layer.width);
  check_parameter(who, "bias", layer.bias, layer.width);
}

template <typename T, typename U>
void check_matrix(std::string_view who, std::string_view what, MatrixView<T> matrix, MatrixView<U> like,
                  std::size_t width) {
  if (matrix.rows() == like.rows() && matrix.width() == width) return;
  throw Error(ErrorCode::Shape, fmt::format("{}: {} is {} x {}, expected {} x {}", who, what, matrix.rows(),
                                            matrix.width(), like.rows(), width));
}

template <typename T>
bool beyond_caches(MatrixView<T> result) {
  return result.rows() * result.width() * sizeof(T) >= bytes_beyond_caches;
}

template <typename T>
bool at_hand(MatrixView<T> result) {
  return result.rows() * result.width() * sizeof(T) <= bytes_at_hand;
}

template <typename T>
void run(const detail::ForwardJob<T>& job, unsigned threads) {
  if (job.layer.elementwise()) return detail::elementwise_forward(job, threads);
  if (job.x.rows() * job.layer.width <= entries_a_thread) return detail::forward_rows(job, 0, job.x.rows());
  if (sliced(job, detail::Shares<T>{nullptr, nullptr}, job.x.rows(), threads)) return;
  parallel_for(job.x.rows(), whole(entries_a_thread, job.layer.width), threads,
               [&](std::size_t first, std::size_t last) { detail::forward_rows(job, first, last); });
}

/// One range of rows whose gradients are summed separately, in `sums`: gain's, then bias's.
template <typename T>
void sum_panel(const detail::BackwardJob<T>& job, std::size_t first, std::size_t last, double* sums,
               Wide<T>* shares) {
  const std::size_t width = job.layer.width;
  std::fill_n(sums, 2 * width, 0.0);
  for (std::size_t row = first; row < last; row += rows_a_run) {
    std::fill_n(shares, 2 * width, Wide<T>{0});
    detail::backward_rows(job, row, std::min(last, row + rows_a_run), {shares, shares + width});
    for (std::size_t i = 0; i < 2 * width; ++i) sums[i] += static_cast<double>(shares[i]);
  }
}

/// Σ of `panels` rows of `sums`, `stride` apart, by pairwise summation; the sums are overwritten.
template <typename W>
void add_panels(double* sums, std::size_t panels, std::size_t stride, std::size_t first, std::size_t last,
                std::span<W> total) {
  for (std::size_t step = 1; step < panels; step *= 2) {
    for (std::size_t p = 0; p + step < panels; p += 2 * step) {
      double* const to = sums + p * stride;
      const double* const from = sums + (p + step) * stride;
      for (std::size_t i = first; i < last; ++i) to[i] += from[i];
    }
  }
  for (std::size_t i = first; i < last && !total.empty(); ++i) total[i] = static_cast<W>(sums[i]);
}

/// For few rows: sums directly into the gradients.
template <typename T>
void run_at_once(const detail::BackwardJob<T>& job, const Gradients<T>& gradients, unsigned threads) {
  const std::size_t width = job.layer.width;
  std::span<Wide<T>> unwanted;
  if (gradients.gain.empty() || gradients.bias.empty()) {
    // Space for both gradients in Wide<T>.
    unwanted = {reinterpret_cast<Wide<T>*>(workspace<double>(width).data()), width};
  }
  const std::span<Wide<T>> gain = gradients.gain.empty() ? unwanted : gradients.gain;
  const std::span<Wide<T>> bias = gradients.bias.empty() ? unwanted : gradients.bias;
  std::fill(gain.begin(), gain.end(), Wide<T>{0});
  std::fill(bias.begin(), bias.end(), Wide<T>{0});
  const detail::Shares<T> to{gain.data(), bias.data()};
  if (!sliced(job, to, 1, threads)) detail::backward_rows(job, 0, job.x.rows(), to);
}

template <typename T>
void run(const detail::BackwardJob<T>& job, const Gradients<T>& gradients, unsigned threads) {
  if (job.layer.elementwise()) return detail::elementwise_backward(job, gradients, threads);
  const std::size_t rows = job.x.rows();
  const std::size_t width = job.layer.width;
  const std::size_t rows_a_thread = whole(entries_a_thread, width);
  if (gradients.gain.empty() && gradients.bias.empty()) {
    if (sliced(job, detail::Shares<T>{nullptr, nullptr}, rows, threads)) return;
    return parallel_for(rows, rows_a_thread, threads, [&](std::size_t first, std::size_t last) {
      detail::backward_rows(job, first, last, {nullptr, nullptr});
    });
  }
  if (rows <= rows_a_run) return run_at_once(job, gradients, threads);
  const std::size_t panel = whole(whole(rows, most_panels), rows_a_run) * rows_a_run;
  const std::size_t panels = whole(rows, panel);
  // Two doubles and two Wide<T> per entry.
  const std::size_t stride = 4 * width;
  const std::span<double> sums = workspace<double>(panels * stride);
  parallel_for(panels, whole(rows_a_thread, panel), threads, [&](std::size_t first, std::size_t last) {
    for (std::size_t p = first; p < last; ++p) {
      double* const of_panel = sums.data() + p * stride;
      sum_panel(job, p * panel, std::min(rows, (p + 1) * panel), of_panel,
                reinterpret_cast<Wide<T>*>(of_panel + 2 * width));
    }
  });
  parallel_for(width, entries_a_thread, threads, [&](std::size_t first, std::size_t last) {
    add_panels(sums.data(), panels, stride, first, last, gradients.gain);
    add_panels(sums.data() + width, panels, stride, first, last, gradients.bias);
  });
}

}  // namespace

template <typename T>
void normalize(const Layer<T>& layer, MatrixView<const std::type_identity_t<T>> x,
               MatrixView<std::type_identity_t<T>> y, unsigned threads) {
  check_layer("normalize", layer);
  check_matrix("normalize", "x", x, x, layer.width);
  check_matrix("normalize", "y", y, x, layer.width);
  run<T>({layer, x, {}, {}, y, beyond_caches(y) && y.data() != x.data(), at_hand(y)}, threads);
}

template <typename T>
void add_normalize(const Layer<T>& layer, MatrixView<const std::type_identity_t<T>> x,
                   MatrixView<const std::type_identity_t<T>> residual,
                   MatrixView<std::type_identity_t<T>> sum, MatrixView<std::type_identity_t<T>> y,
                   unsigned threads) {
  check_layer("add_normalize", layer);
  check_matrix("add_normalize", "x", x, x, layer.width);
  check_matrix("add_normalize", "residual", residual, x, layer.width);
  check_matrix("add_normalize", "sum", sum, x, layer.width);
  check_matrix("add_normalize", "y", y, x, layer.width);
  if (x.rows() == 0) return;
  const bool apart = y.data() != x.data() && y.data() != residual.data() && y.data() != sum.data();
  run<T>({layer, x, residual, sum, y, beyond_caches(y) && apart, at_hand(y)}, threads);
}

template <typename T>
void normalize_backward(const Layer<T>& layer, MatrixView<const std::type_identity_t<T>> x,
                        MatrixView<const std::type_identity_t<T>> dy, MatrixView<std::type_identity_t<T>> dx,
                        const Gradients<T>& gradients, unsigned threads) {
  check_layer("normalize_backward", layer);
  check_matrix("normalize_backward", "x", x, x, layer.width);
  check_matrix("normalize_backward", "dy", dy, x, layer.width);
  check_matrix("normalize_backward", "dx", dx, x, layer.width);
  check_parameter("normalize_backward", "the gain's gradient", gradients.gain, layer.width);
  check_parameter("normalize_backward", "the bias's gradient", gradients.bias, layer.width);
  if (!layer.elementwise() && (gradients.alpha != nullptr || gradients.shift != nullptr)) {
    throw Error(ErrorCode::Argument, fmt::format("normalize_backward: {} has no alpha and no shift, expected "
                                                 "no place for their gradients",
                                                 to_string(layer.kind)));
  }
  run<T>({layer, x, dy, dx, beyond_caches(dx) && dx.data() != dy.data(), at_hand(dx)}, gradients, threads);
}

#define NORMSCOPE_KERNELS(T)                                                                               \
  template void normalize<T>(const Layer<T>&, MatrixView<const T>, MatrixView<T>, unsigned);               \
  template void add_normalize<T>(const Layer<T>&, MatrixView<const T>, MatrixView<const T>, MatrixView<T>, \
                                 MatrixView<T>, unsigned);                                                 \
  template void normalize_backward<T>(const Layer<T>&, MatrixView<const T>, MatrixView<const T>,           \
                                      MatrixView<T>, const Gradients<T>&, unsigned);
NORMSCOPE_KERNELS(double)
NORMSCOPE_KERNELS(float)
NORMSCOPE_KERNELS(Bfloat16)
NORMSCOPE_KERNELS(Float16)
#undef NORMSCOPE_KERNELS

}  // namespace normscope::norm
