#include <normscope/norm/kernels.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

#include "kernel_jobs.hpp"

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

// A few long rows: their blocks or columns are split among threads.

/// Entries below which another thread costs more than it saves; twice as many if gradients are summed, which
/// then move between the threads' caches.
constexpr std::size_t entries_a_thread = std::size_t{1} << 15U;
constexpr std::size_t summed_entries_a_thread = std::size_t{1} << 16U;
/// Entries processed by a thread at a time.
constexpr std::size_t entries_a_piece = std::size_t{1} << 14U;
/// Pieces are multiples of this many columns, which every instruction set's run length divides, and the
/// shortest run length.
constexpr std::size_t columns_a_piece = 2048;
constexpr std::size_t shortest_run = 128;
/// Entries that are still in a cache when they are normalized after being measured.
constexpr std::size_t entries_at_a_time = std::size_t{1} << 18U;

std::size_t whole(std::size_t count, std::size_t of) { return (count + of - 1) / of; }

/// Memory that a thread keeps for its next call.
template <typename Item>
std::span<Item> workspace(std::size_t size) {
  thread_local std::vector<Item> kept;
  if (kept.size() < size) kept.resize(size);
  return std::span(kept).first(size);
}

template <typename T>
void take(const detail::ForwardJob<T>& job, std::size_t first, std::size_t last, detail::Shares<T> /*to*/) {
  detail::forward_rows(job, first, last);
}
template <typename T>
void take(const detail::BackwardJob<T>& job, std::size_t first, std::size_t last, detail::Shares<T> to) {
  detail::backward_rows(job, first, last, to);
}

/// Groups [first, last).
template <typename W>
BasicNorm<std::span<const W>> part(const BasicNorm<std::span<const W>>& layer, std::size_t first,
                                   std::size_t last) {
  const std::size_t n = layer.width / layer.groups;
  BasicNorm<std::span<const W>> result = layer;
  result.width = (last - first) * n;
  result.groups = last - first;
  if (!layer.gain.empty()) result.gain = layer.gain.subspan(first * n, result.width);
  if (!layer.bias.empty()) result.bias = layer.bias.subspan(first * n, result.width);
  return result;
}

template <typename T>
MatrixView<T> part(MatrixView<T> matrix, std::size_t row, std::size_t rows, std::size_t begin,
                   std::size_t width) {
  if (matrix.data() == nullptr) return matrix;
  return {matrix.data() + row * matrix.stride() + begin, rows, width, matrix.stride()};
}

/// The part of `layer` from `begin` on, for rows [row, row + rows).
template <typename T>
detail::ForwardJob<T> part(const detail::ForwardJob<T>& job, const Layer<T>& layer, std::size_t row,
                           std::size_t rows, std::size_t begin) {
  const auto of = [&](auto matrix) { return part(matrix, row, rows, begin, layer.width); };
  return {layer, of(job.x), of(job.residual), of(job.sum), of(job.y), job.stream, job.at_hand};
}
template <typename T>
detail::BackwardJob<T> part(const detail::BackwardJob<T>& job, const Layer<T>& layer, std::size_t row,
                            std::size_t rows, std::size_t begin) {
  const auto of = [&](auto matrix) { return part(matrix, row, rows, begin, layer.width); };
  return {layer, of(job.x), of(job.dy), of(job.dx), job.stream, job.at_hand};
}

template <typename T>
detail::Shares<T> part(detail::Shares<T> to, std::size_t begin) {
  if (to.gain == nullptr) return to;
  return {to.gain + begin, to.bias + begin};
}

/// The job that remains after x + residual has been stored.
template <typename T>
detail::ForwardJob<T> summed(const detail::ForwardJob<T>& job) {
  if (job.residual.data() == nullptr) return {job.layer, job.x, {}, {}, job.y, job.stream, job.at_hand};
  return {job.layer, job.sum, {}, {}, job.y, job.stream, job.at_hand};
}
template <typename T>
detail::BackwardJob<T> summed(const detail::BackwardJob<T>& job) {
  return {job.layer, job.x, job.dy, job.dx, job.stream, job.at_hand};
}

/// A few rows of one group.
template <template <typename> class Job, typename T>
void by_columns(Job<T> job, detail::Shares<T> to, unsigned threads) {
  using Step = detail::ByColumns::Step;
  const std::size_t rows = job.x.rows();
  const std::size_t width = job.layer.width;
  const std::size_t stride = whole(width, shortest_run);
  detail::ByColumns columns{Step::measure, workspace<detail::Run>(rows * stride).data(), stride, true};
  job.columns = &columns;
  const auto each = [&](Step step) {
    columns.step = step;
    parallel_for(whole(width, columns_a_piece), whole(entries_a_piece, columns_a_piece * rows), threads,
                 [&](std::size_t first, std::size_t last) {
                   take(job, first * columns_a_piece, std::min(width, last * columns_a_piece), to);
                 });
  };
  each(Step::measure);
  columns.step = Step::join;
  take(job, 0, width, to);
  if (columns.ordinary) return each(Step::apply);
  // Such rows are slow; if gradients are summed, they are processed one after another.
  const std::size_t grain = to.gain == nullptr ? whole(entries_a_piece, width) : rows;
  parallel_for(rows, grain, threads,
               [&](std::size_t first, std::size_t last) { take(summed(job), first, last, to); });
}

/// Processes all rows of a job by blocks or columns, if that occupies more threads than its `pieces`; returns
/// whether it did.
template <template <typename> class Job, typename T>
bool sliced(const Job<T>& job, detail::Shares<T> to, std::size_t pieces, unsigned threads) {
  const Layer<T>& layer = job.layer;
  const std::size_t rows = job.x.rows();
  const std::size_t n = layer.width / layer.groups;
  const std::size_t a_thread = to.gain == nullptr ? entries_a_thread : summed_entries_a_thread;
  const auto fed =
      static_cast<unsigned>(std::min<std::size_t>(thread_count(threads), rows * layer.width / a_thread));
  if (pieces >= fed) return false;
  if (layer.groups >= fed || (layer.groups > 1 && n < 2 * columns_a_piece)) {
    parallel_for(layer.groups, whole(entries_a_piece, rows * n), fed,
                 [&](std::size_t first, std::size_t last) {
                   const Layer<T> own = part(layer, first, last);
                   take(part(job, own, 0, rows, first * n), 0, rows, part(to, first * n));
                 });
    return true;
  }
  // Blocks as short as these are measured together, in a different order of summation.
  if (n < 2 * columns_a_piece) return false;
  // In groups of four rows, because their gradients are summed together.
  const std::size_t batch = 4 * std::max<std::size_t>(1, entries_at_a_time / (4 * n));
  for (std::size_t group = 0; group < layer.groups; ++group) {
    const Layer<T> own = part(layer, group, group + 1);
    for (std::size_t row = 0; row < rows; row += batch) {
      by_columns(part(job, own, row, std::min(batch, rows - row), group * n), part(to, group * n), fed);
    }
  }
  return true;
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
