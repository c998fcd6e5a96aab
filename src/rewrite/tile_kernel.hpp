#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <normscope/core/dtype.hpp>

#include "matrix.hpp"

namespace normscope::rewrite {

/// Elements that are converted together: kernels take multiples of it, and rows that are shorter end in
/// zeros.
inline constexpr std::size_t tile_step = 16;
/// Elements of a tile, a part of some rows of a matrix that the nearest caches hold as float64.
inline constexpr std::size_t tile_size = 1024;
/// Elements of the longest vector of float64.
inline constexpr std::size_t most_lanes = 8;

/// x' = (x − shift) factor, with one shift and factor for each element, or (`is_one`) `most_lanes` copies of
/// those of a row.
struct RowChange {
  const double* shift = nullptr;
  const double* factor = nullptr;
  bool is_one = false;
};

/// A row, or a part of one, as it is read, rewritten in float64, and as stored.
struct RowValues {
  double* old = nullptr;
  double* exact = nullptr;
  double* stored = nullptr;
};

struct RowFlags {
  bool is_held = true;      ///< whether the dtype has every value: none is infinite or NaN
  std::uint64_t small = 0;  ///< bit k: of elements [16 k, 16 k + 16) one is below the normal numbers
};

/// Rewrites `count` elements, at most `tile_size`, and rounds them to their dtype, to nearest, ties to even.
///
/// Requires  F64, F32, F16 or BF16; rows that are aligned as their elements
///
/// Accuracy  stored values are those of `encode` where the flags say that they are held
///           (test: RewriteTiles.RoundAsTheDtypeSays)
[[nodiscard]] RowFlags convert_row(Dtype dtype, const std::byte* row, const RowChange& change,
                                   std::size_t count, std::byte* rewritten, const RowValues& values);

/// The elements of a row in float64.
void decode_row(Dtype dtype, const std::byte* row, std::size_t count, double* values);

/// Sums of squares.
struct Lengths {
  double exact = 0.0;
  double error = 0.0;  ///< of stored − exact
  double old = 0.0;
};

/// Sums over the input features for every probe.
struct OutputSums {
  Probe old{};
  Probe exact{};
  Probe stored{};
};

/// Probes one after the other, probe k from `stride` k on.
struct ProbeRows {
  const double* old = nullptr;
  const double* rewritten = nullptr;
  std::size_t stride = 0;
};

/// Adds what a row gives. Sums have the rounding errors of float64, in an order that depends on the
/// instruction set.
void add_lengths_of_row(const RowValues& row, std::size_t count, Lengths& lengths);
void add_outputs_of_row(const RowValues& row, std::size_t count, const ProbeRows& inputs,
                        OutputSums& outputs);

/// Some rows of `stride` elements each, of which `columns` count.
struct TileRows {
  RowValues values;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;
};

/// Numbers that a column has in the following functions, number n of column j at [n stride + j].
inline constexpr std::size_t numbers_of_lengths = 3;                ///< in the order of `Lengths`
inline constexpr std::size_t numbers_of_outputs = 3 * probe_count;  ///< in the order of `OutputSums`
inline constexpr std::size_t numbers_of_dots = 3;                   ///< sum, its compensation, magnitude

/// Adds what some rows give to each column: in every column in the order of its rows.
void add_lengths_of_columns(const TileRows& tile, double* numbers, std::size_t stride);
void add_outputs_of_columns(const TileRows& tile, const Probe* old_inputs, const Probe* new_inputs,
                            double* numbers, std::size_t stride);
/// Σ w_i x_ij and Σ |w_i x_ij| of the rows in `values.old`, the first compensated (Knuth's sum).
void add_dots_of_columns(const TileRows& tile, const double* weights, double* numbers, std::size_t stride);

/// Dot products along a row; the numbers of `most_lanes` sums each, to be added up.
void dots_of_row(const double* values, const double* weights, std::size_t count, double* numbers);

}  // namespace normscope::rewrite
