#include "matrix_rewrite.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::rewrite {
namespace {

using models::Layout;

/// Rows of a tile whose columns are summed.
constexpr std::size_t rows_of_a_tile = 8;

std::size_t padded(std::size_t count) { return (count + tile_step - 1) / tile_step * tile_step; }

bool rows_are_inputs(const StoredMatrix& matrix) { return matrix.map.layout == Layout::in_out; }

/// The memory of one tile, aligned as every dtype.
struct TileMemory {
  alignas(64) std::array<std::byte, tile_size * sizeof(double)> read;
  alignas(64) std::array<std::byte, tile_size * sizeof(double)> written;
  alignas(64) std::array<double, tile_size> old;
  alignas(64) std::array<double, tile_size> exact;
  alignas(64) std::array<double, tile_size> stored;

  [[nodiscard]] RowValues row(std::size_t offset) {
    return {old.data() + offset, exact.data() + offset, stored.data() + offset};
  }

  /// Zeros from `count` to the next multiple of `tile_step`, whatever was made of them.
  void end_row(std::size_t offset, std::size_t count) {
    for (auto* values : {&old, &exact, &stored}) {
      std::fill(values->begin() + static_cast<std::ptrdiff_t>(offset + count),
                values->begin() + static_cast<std::ptrdiff_t>(offset + padded(count)), 0.0);
    }
  }
};

bool is_aligned(const std::byte* bytes, std::size_t size) {
  return reinterpret_cast<std::uintptr_t>(bytes) % size == 0;
}

/// Copies a part of a row to where kernels read it.
void load(std::span<const std::byte> bytes, std::size_t count, std::size_t size, std::byte* to) {
  std::memcpy(to, bytes.data(), count * size);
  std::memset(to + count * size, 0, (padded(count) - count) * size);
}

/// Cuts a matrix into tiles of a few rows and columns; if columns are summed, a thread has all rows of a
/// block for some columns, otherwise some rows.
class MatrixRewrite {
 public:
  MatrixRewrite(const StoredMatrix& matrix, const InputChange& change, std::span<const Probe> old_inputs,
                std::span<const Probe> new_inputs, bool lengths_of_outputs, const SmallValue& small)
      : matrix_(matrix),
        dtype_(matrix.tensor.dtype),
        size_(bits(dtype_) / 8),
        columns_(matrix.columns()),
        stride_(padded(columns_)),
        by_row_(rows_are_inputs(matrix)),
        lengths_of_rows_(lengths_of_outputs != by_row_),
        sums_columns_(by_row_ || !lengths_of_rows_),
        tile_columns_(sums_columns_ ? tile_size / rows_of_a_tile : tile_size),
        tiles_((columns_ + tile_columns_ - 1) / tile_columns_),
        shift_(by_row_ ? 0 : stride_),
        factor_(by_row_ ? 0 : stride_),
        change_(change),
        old_inputs_(old_inputs),
        new_inputs_(new_inputs),
        small_(small) {
    if (!by_row_) {
      old_probes_.resize(probe_count * stride_);
      new_probes_.resize(probe_count * stride_);
      for (std::size_t j = 0; j < columns_; ++j) {
        shift_[j] = shift_of(j);
        factor_[j] = factor_of(j);
        for (std::size_t k = 0; k < probe_count; ++k) {
          old_probes_[k * stride_ + j] = old_inputs[j][k];
          new_probes_[k * stride_ + j] = new_inputs[j][k];
        }
      }
    }
    if (by_row_) column_outputs_.resize(numbers_of_outputs * stride_);
    if (!lengths_of_rows_) column_lengths_.resize(numbers_of_lengths * stride_);
    sums_.outputs.resize(matrix.map.stored_out);
    sums_.lengths.resize(lengths_of_outputs ? matrix.map.stored_out : matrix.map.in);
  }

  MatrixSums run(unsigned threads, const Sink& sink) {
    for_each_block(matrix_, [&](std::size_t first, std::size_t rows, std::span<const std::byte> bytes) {
      first_ = first;
      read_ = bytes;
      written_ = sink(bytes.size());
      parts_.assign(rows * tiles_, {});
      rewrite_block(rows, threads);
      add_rows(rows);
    });
    add_columns();
    return std::move(sums_);
  }

 private:
  struct RowPart {
    OutputSums outputs{};
    Lengths lengths{};
  };

  [[nodiscard]] double shift_of(std::size_t input) const {
    return change_.shift.empty() ? 0.0 : change_.shift[input];
  }
  [[nodiscard]] double factor_of(std::size_t input) const {
    return change_.factor.empty() ? 1.0 : change_.factor[input];
  }

  void rewrite_block(std::size_t rows, unsigned threads) {
    if (!sums_columns_) {
      parallel_for(rows, 1, threads, [&](std::size_t from, std::size_t to) {
        TileMemory memory;
        for (std::size_t row = from; row < to; ++row) {
          for (std::size_t tile = 0; tile < tiles_; ++tile) rewrite_tile(tile, row, 1, memory);
        }
      });
      return;
    }
    parallel_for(tiles_, 1, threads, [&](std::size_t from, std::size_t to) {
      TileMemory memory;
      for (std::size_t tile = from; tile < to; ++tile) {
        for (std::size_t row = 0; row < rows; row += rows_of_a_tile) {
          rewrite_tile(tile, row, std::min(rows_of_a_tile, rows - row), memory);
        }
      }
    });
  }

  void rewrite_tile(std::size_t tile, std::size_t first_row, std::size_t rows, TileMemory& memory) {
    const std::size_t begin = tile * tile_columns_;
    const std::size_t count = std::min(tile_columns_, columns_ - begin);
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t offset = i * tile_columns_;
      rewrite_row(first_row + i, begin, count, offset, memory);
      RowPart& part = parts_[(first_row + i) * tiles_ + tile];
      const RowValues values = memory.row(offset);
      if (lengths_of_rows_) add_lengths_of_row(values, padded(count), part.lengths);
      if (by_row_) continue;
      const ProbeRows inputs{old_probes_.data() + begin, new_probes_.data() + begin, stride_};
      add_outputs_of_row(values, padded(count), inputs, part.outputs);
    }
    const TileRows all{memory.row(0), rows, padded(count), tile_columns_};
    if (!lengths_of_rows_) add_lengths_of_columns(all, column_lengths_.data() + begin, stride_);
    if (!by_row_) return;
    const std::size_t input = first_ + first_row;
    add_outputs_of_columns(all, &old_inputs_[input], &new_inputs_[input], column_outputs_.data() + begin,
                           stride_);
  }

  /// Elements [begin, begin + count) of a row of the block.
  void rewrite_row(std::size_t row, std::size_t begin, std::size_t count, std::size_t offset,
                   TileMemory& memory) {
    const std::size_t at = row * columns_ + begin;
    const std::byte* read = read_.data() + at * size_;
    std::byte* written = written_.data() + at * size_;
    // Kernels take whole steps of elements that are aligned.
    const bool is_copied = count % tile_step != 0 || !is_aligned(read, size_) || !is_aligned(written, size_);
    if (is_copied) {
      load(read_.subspan(at * size_), count, size_, memory.read.data());
      read = memory.read.data();
      written = memory.written.data();
    }
    std::array<double, most_lanes> shift{};
    std::array<double, most_lanes> factor{};
    RowChange change{shift.data(), factor.data(), true};
    if (by_row_) {
      shift.fill(shift_of(first_ + row));
      factor.fill(factor_of(first_ + row));
    } else {
      change = {shift_.data() + begin, factor_.data() + begin};
    }
    const RowValues values = memory.row(offset);
    const RowFlags flags = convert_row(dtype_, read, change, padded(count), written, values);
    if (is_copied) std::memcpy(written_.data() + at * size_, written, count * size_);
    if (!flags.is_held) {
      expect_held(matrix_.tensor, {values.old, count}, {values.exact, count});
    }
    if (small_ && flags.small != 0) report_small(first_ * columns_ + at, count, values, flags.small);
    memory.end_row(offset, count);
  }

  void report_small(std::uint64_t at, std::size_t count, const RowValues& values, std::uint64_t steps) const {
    const double smallest = smallest_normal(dtype_);
    for (std::size_t begin = 0; begin < count; begin += tile_step, steps >>= 1U) {
      if ((steps & 1U) == 0) continue;
      for (std::size_t j = begin; j < std::min(begin + tile_step, count); ++j) {
        const bool is_small = std::abs(values.stored[j]) < smallest && values.old[j] != 0.0;
        if (is_small) small_(at + j, values.old[j], values.stored[j]);
      }
    }
  }

  /// What the tiles of the block gave to its rows.
  void add_rows(std::size_t rows) {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t tile = 0; tile < tiles_; ++tile) {
        const RowPart& part = parts_[row * tiles_ + tile];
        if (lengths_of_rows_) {
          Lengths& lengths = sums_.lengths[first_ + row];
          lengths.exact += part.lengths.exact;
          lengths.error += part.lengths.error;
          lengths.old += part.lengths.old;
        }
        if (by_row_) continue;
        OutputSums& outputs = sums_.outputs[first_ + row];
        for (std::size_t k = 0; k < probe_count; ++k) {
          outputs.old[k] += part.outputs.old[k];
          outputs.exact[k] += part.outputs.exact[k];
          outputs.stored[k] += part.outputs.stored[k];
        }
      }
    }
  }

  void add_columns() {
    for (std::size_t j = 0; j < columns_; ++j) {
      const auto number = [&](const std::vector<double>& of, std::size_t n) { return of[n * stride_ + j]; };
      if (!lengths_of_rows_) {
        sums_.lengths[j] = {number(column_lengths_, 0), number(column_lengths_, 1),
                            number(column_lengths_, 2)};
      }
      if (!by_row_) continue;
      for (std::size_t k = 0; k < probe_count; ++k) {
        sums_.outputs[j].old[k] = number(column_outputs_, k);
        sums_.outputs[j].exact[k] = number(column_outputs_, probe_count + k);
        sums_.outputs[j].stored[k] = number(column_outputs_, 2 * probe_count + k);
      }
    }
  }

  const StoredMatrix& matrix_;
  Dtype dtype_;
  std::size_t size_;
  std::size_t columns_;
  std::size_t stride_;
  bool by_row_;           ///< rows of the file are input features
  bool lengths_of_rows_;  ///< of the file
  bool sums_columns_;
  std::size_t tile_columns_;
  std::size_t tiles_;
  std::vector<double> shift_;  ///< of columns
  std::vector<double> factor_;
  InputChange change_;
  std::span<const Probe> old_inputs_;
  std::span<const Probe> new_inputs_;
  const SmallValue& small_;
  std::vector<double> old_probes_;  ///< of columns, probe by probe
  std::vector<double> new_probes_;
  std::vector<double> column_outputs_;
  std::vector<double> column_lengths_;
  MatrixSums sums_;
  std::size_t first_ = 0;  ///< row of the block
  std::span<const std::byte> read_;
  std::span<std::byte> written_;
  std::vector<RowPart> parts_;  ///< of the block's rows, tile by tile
};

/// Names the first value that is not finite.
void expect_finite_sums(const StoredMatrix& matrix, const WeightedSums& sums) {
  if (std::all_of(sums.magnitude.begin(), sums.magnitude.end(), [](double m) { return std::isfinite(m); })) {
    return;
  }
  for_each_block(matrix, [&](std::size_t /*first*/, std::size_t rows, std::span<const std::byte> bytes) {
    std::vector<double> values(rows * matrix.columns());
    decode(matrix.tensor.dtype, bytes, values);
    expect_finite(matrix.tensor, values, values, values);
  });
}

/// For every row of the file Σ over its columns.
WeightedSums sums_of_rows(const StoredMatrix& matrix, std::span<const double> weights, unsigned threads) {
  const std::size_t columns = matrix.columns();
  const std::size_t size = bits(matrix.tensor.dtype) / 8;
  std::vector<double> of_columns(padded(columns));
  std::fill_n(of_columns.begin(), columns, 1.0);
  std::copy(weights.begin(), weights.end(), of_columns.begin());
  WeightedSums result{std::vector<double>(matrix.rows()), std::vector<double>(matrix.rows())};
  for_each_block(matrix, [&](std::size_t first, std::size_t rows, std::span<const std::byte> bytes) {
    parallel_for(rows, 1, threads, [&](std::size_t from, std::size_t to) {
      TileMemory memory;
      std::array<double, numbers_of_dots * most_lanes> numbers{};
      for (std::size_t row = from; row < to; ++row) {
        CompensatedSum sum;
        double magnitude = 0.0;
        for (std::size_t begin = 0; begin < columns; begin += tile_size) {
          const std::size_t count = std::min(tile_size, columns - begin);
          load(bytes.subspan((row * columns + begin) * size), count, size, memory.read.data());
          decode_row(matrix.tensor.dtype, memory.read.data(), padded(count), memory.old.data());
          dots_of_row(memory.old.data(), of_columns.data() + begin, padded(count), numbers.data());
          for (std::size_t lane = 0; lane < most_lanes; ++lane) {
            sum.add(numbers[lane]);
            sum.add(numbers[most_lanes + lane]);
            magnitude += numbers[2 * most_lanes + lane];
          }
        }
        result.sum[first + row] = sum.value();
        result.magnitude[first + row] = magnitude;
      }
    });
  });
  expect_finite_sums(matrix, result);
  return result;
}

/// For every column of the file Σ over its rows.
WeightedSums sums_of_columns(const StoredMatrix& matrix, std::span<const double> weights, unsigned threads) {
  const std::size_t columns = matrix.columns();
  const std::size_t stride = padded(columns);
  const std::size_t size = bits(matrix.tensor.dtype) / 8;
  constexpr std::size_t tile_columns = tile_size / rows_of_a_tile;
  std::vector<double> numbers(numbers_of_dots * stride);
  for_each_block(matrix, [&](std::size_t first, std::size_t rows, std::span<const std::byte> bytes) {
    parallel_for(
        (columns + tile_columns - 1) / tile_columns, 1, threads, [&](std::size_t from, std::size_t to) {
          TileMemory memory;
          for (std::size_t begin = from * tile_columns; begin < std::min(to * tile_columns, columns);
               begin += tile_columns) {
            const std::size_t count = std::min(tile_columns, columns - begin);
            for (std::size_t row = 0; row < rows; row += rows_of_a_tile) {
              const std::size_t together = std::min(rows_of_a_tile, rows - row);
              std::array<double, rows_of_a_tile> factors{};
              for (std::size_t i = 0; i < together; ++i) {
                load(bytes.subspan(((row + i) * columns + begin) * size), count, size, memory.read.data());
                decode_row(matrix.tensor.dtype, memory.read.data(), padded(count),
                           memory.old.data() + i * tile_columns);
                factors[i] = weights.empty() ? 1.0 : weights[first + row + i];
              }
              add_dots_of_columns({memory.row(0), together, padded(count), tile_columns}, factors.data(),
                                  numbers.data() + begin, stride);
            }
          }
        });
  });
  WeightedSums result{std::vector<double>(columns), std::vector<double>(columns)};
  for (std::size_t j = 0; j < columns; ++j) {
    result.sum[j] = numbers[j] + numbers[stride + j];
    result.magnitude[j] = numbers[2 * stride + j];
  }
  expect_finite_sums(matrix, result);
  return result;
}

}  // namespace

void for_each_block(const StoredMatrix& matrix, const UseBlock& use) {
  constexpr std::size_t bytes_of_a_block = std::size_t{1} << 19U;
  constexpr std::size_t most_rows_of_a_block = 4096;  // bounds what is held for each row
  const std::size_t columns = matrix.columns();
  const std::size_t size = bits(matrix.tensor.dtype) / 8;
  const std::size_t block = std::clamp<std::size_t>(
      bytes_of_a_block / std::max<std::size_t>(1, columns * size), std::size_t{1}, most_rows_of_a_block);
  std::vector<std::byte> buffer;
  for (std::size_t first = 0; first < matrix.rows(); first += block) {
    const std::size_t rows = std::min<std::size_t>(block, matrix.rows() - first);
    const std::uint64_t begin = (matrix.map.weight.offset + first * columns) * size;
    use(first, rows, matrix.tensor.bytes.part(begin, rows * columns * size).fetch(buffer));
  }
}

MatrixSums rewrite_matrix(const StoredMatrix& matrix, const InputChange& change,
                          std::span<const Probe> old_inputs, std::span<const Probe> new_inputs,
                          bool lengths_of_outputs, unsigned threads, const Sink& sink,
                          const SmallValue& small) {
  return MatrixRewrite(matrix, change, old_inputs, new_inputs, lengths_of_outputs, small).run(threads, sink);
}

WeightedSums sums_over_inputs(const StoredMatrix& matrix, std::span<const double> weights, unsigned threads) {
  return rows_are_inputs(matrix) ? sums_of_columns(matrix, weights, threads)
                                 : sums_of_rows(matrix, weights, threads);
}

WeightedSums sums_over_outputs(const StoredMatrix& matrix, unsigned threads) {
  return rows_are_inputs(matrix) ? sums_of_rows(matrix, {}, threads) : sums_of_columns(matrix, {}, threads);
}

}  // namespace normscope::rewrite
