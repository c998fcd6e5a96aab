#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/per_thread.hpp>

#include "kernel_jobs.hpp"

/// Splits the blocks or columns of a few long rows among threads.
namespace normscope::norm {

/// Entries below which another thread costs more than it saves; twice as many if gradients are summed, which
/// then move between the threads' caches.
inline constexpr std::size_t entries_a_thread = std::size_t{1} << 15U;
inline constexpr std::size_t summed_entries_a_thread = std::size_t{1} << 16U;
/// Entries processed by a thread at a time.
inline constexpr std::size_t entries_a_piece = std::size_t{1} << 14U;
/// Pieces are multiples of this many columns, which every instruction set's run length divides, and the
/// shortest run length.
inline constexpr std::size_t columns_a_piece = 2048;
inline constexpr std::size_t shortest_run = 128;
/// Entries that are still in a cache when they are normalized after being measured.
inline constexpr std::size_t entries_at_a_time = std::size_t{1} << 18U;

inline std::size_t whole(std::size_t count, std::size_t of) { return (count + of - 1) / of; }

/// Memory that a thread keeps for its next call.
template <typename Item>
std::span<Item> workspace(std::size_t size) {
  static const PerThread<std::vector<Item>> items;
  std::vector<Item>& kept = items.of_this_thread();
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

/// The same job after x + residual has been stored.
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

}  // namespace normscope::norm
