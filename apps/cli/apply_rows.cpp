#include "apply_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/files/array.hpp>
#include <normscope/norm/kernels.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::cli {
namespace {

using Bytes = std::span<const std::byte>;
using norm::Bfloat16;
using norm::Float16;
using norm::Wide;

/// Entries of a block of rows: enough to keep every thread busy, few enough for little memory.
constexpr std::size_t entries_a_block = std::size_t{1} << 20;
/// Least number of entries that one thread takes at a time.
constexpr std::size_t entries_a_piece = std::size_t{1} << 14;

template <typename T>
constexpr Dtype dtype_of = std::is_same_v<T, double>  ? Dtype::F64
                           : std::is_same_v<T, float> ? Dtype::F32
                                                      : Dtype::F16;

template <typename T>
bool is_aligned(Bytes bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0;
}

/// Converts elements of `dtype` to T, which represents them exactly, into `buffer`.
template <typename T>
void widen(Dtype dtype, Bytes bytes, std::vector<T>& buffer) {
  buffer.resize(bytes.size() / (bits(dtype) / 8));
  if (dtype == dtype_of<T>) {
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    return;
  }
  if constexpr (std::is_same_v<T, double>) decode(dtype, bytes, buffer);
  if constexpr (std::is_same_v<T, float>) {
    for (std::size_t i = 0; i < buffer.size(); ++i) {
      Bfloat16 element;
      std::memcpy(&element, bytes.data() + i * sizeof element, sizeof element);
      buffer[i] = norm::to_float(element);
    }
  }
}

/// Calls `block` with the bytes and the number of rows of each block.
template <typename Block>
void for_blocks(const StoredRows& x, Block block) {
  const std::size_t row_bytes = x.width * (bits(x.dtype) / 8);
  const std::size_t step = std::max<std::size_t>(1, entries_a_block / x.width);
  for (std::size_t first = 0; first < x.rows; first += step) {
    const std::size_t rows = std::min(step, x.rows - first);
    block(x.bytes.subspan(first * row_bytes, rows * row_bytes), rows);
  }
}

/// Writes values as elements of `dtype`.
template <typename T>
void write_as(Dtype dtype, const std::vector<T>& values, std::vector<std::byte>& buffer,
              const std::function<void(Bytes)>& write) {
  if constexpr (std::is_same_v<T, double>) {
    if (dtype != Dtype::F64) {
      buffer.resize(values.size() * (bits(dtype) / 8));
      encode(dtype, values, buffer);
      return write(buffer);
    }
  }
  write(std::as_bytes(std::span(values)));
}

/// The norm, computed in T.
template <typename T>
void normalize_as(const NormSpec& spec, const StoredRows& x, const std::function<void(Bytes)>& write,
                  unsigned threads) {
  const std::vector<Wide<T>> gain(spec.gain.begin(), spec.gain.end());
  const std::vector<Wide<T>> bias(spec.bias.begin(), spec.bias.end());
  const norm::Layer<T> layer{.kind = spec.kind,
                             .width = spec.width,
                             .groups = spec.groups,
                             .eps = spec.eps,
                             .gain = gain,
                             .bias = bias,
                             .alpha = spec.alpha,
                             .shift = spec.shift};
  const Dtype written = files::npy_dtype(x.dtype);
  std::vector<T> results;
  std::vector<std::byte> encoded;
  for_blocks(x, [&](Bytes bytes, std::size_t rows) {
    const T* in = nullptr;
    if (x.dtype == dtype_of<T> && is_aligned<T>(bytes)) {
      in = reinterpret_cast<const T*>(bytes.data());
      results.resize(rows * x.width);
    } else {
      widen(x.dtype, bytes, results);
      in = results.data();
    }
    norm::normalize<T>(layer, {in, rows, x.width}, {results.data(), rows, x.width}, threads);
    write_as(written, results, encoded, write);
  });
}

void step_by_step(const NormSpec& spec, norm::Step step, const StoredRows& x,
                  const std::function<void(Bytes)>& write, unsigned threads) {
  const std::size_t grain = 1 + entries_a_piece / x.width;
  std::vector<double> values;
  std::vector<std::byte> encoded;
  for_blocks(x, [&](Bytes bytes, std::size_t rows) {
    widen(x.dtype, bytes, values);
    parallel_for(rows, grain, threads, [&](std::size_t first, std::size_t last) {
      const MatrixView<double> piece(values.data() + first * x.width, last - first, x.width);
      norm::apply(step, spec, piece, piece);
    });
    write_as(files::npy_dtype(x.dtype), values, encoded, write);
  });
}

/// Whether float32 represents all values exactly.
bool fit_float(const std::vector<double>& values) {
  constexpr double largest = 0x1.fffffep127;
  return std::all_of(values.begin(), values.end(), [](double value) {
    return std::abs(value) <= largest && static_cast<double>(static_cast<float>(value)) == value;
  });
}

}  // namespace

void apply_rows(const NormSpec& spec, const std::string& step, const StoredRows& x,
                const std::function<void(Bytes)>& write, unsigned threads) {
  if (!step.empty()) return step_by_step(spec, norm::step(step), x, write, threads);
  const bool narrow = fit_float(spec.gain) && fit_float(spec.bias);
  if (narrow && x.dtype == Dtype::F16) return normalize_as<Float16>(spec, x, write, threads);
  if (narrow && (x.dtype == Dtype::F32 || x.dtype == Dtype::BF16)) {
    return normalize_as<float>(spec, x, write, threads);
  }
  normalize_as<double>(spec, x, write, threads);
}

}  // namespace normscope::cli
