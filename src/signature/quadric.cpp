#include "quadric.hpp"

#include <algorithm>
#include <utility>

#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::signature {
namespace {

/// About how many rows, and how many columns, are multiplied at a time.
constexpr std::size_t block_of_rows = 512;
constexpr std::size_t block_of_columns = 128;

template <typename T>
MatrixView<const T> converted(MatrixView<const double> points, std::vector<T>& buffer) {
  buffer.resize(points.rows() * points.width());
  std::transform(points.data(), points.data() + buffer.size(), buffer.begin(),
                 [](double value) { return static_cast<T>(value); });
  return {buffer.data(), points.rows(), points.width()};
}

/// The matrix with the blocks below its diagonal blocks added to those above: the same quadratic form in half
/// the products.
template <typename T>
std::vector<T> to_the_right(const std::vector<double>& matrix, std::size_t width) {
  std::vector<T> result(matrix.size(), T{0});
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = i / block_of_columns * block_of_columns; j < width; ++j) {
      const bool is_diagonal = i / block_of_columns == j / block_of_columns;
      result[i * width + j] = static_cast<T>((is_diagonal ? 1.0 : 2.0) * matrix[i * width + j]);
    }
  }
  return result;
}

}  // namespace

std::vector<RowSlices::Block> RowSlices::blocks(std::size_t size) const {
  std::vector<Block> result;
  const std::size_t first = first_slice(rank());
  for (std::size_t slice = 0; slice < own_slices(); ++slice) {
    const std::size_t begin = row_of(first + slice);
    const std::size_t rows = row_of(first + slice + 1) - begin;
    if (rows == 0) continue;
    // The parts have equal size, since a product of few rows takes longer a row.
    const std::size_t parts = std::max<std::size_t>(1, (rows + size / 2) / size);
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t from = rows * part / parts;
      result.push_back({slice, begin + from, rows * (part + 1) / parts - from});
    }
  }
  return result;
}

void RowSlices::sum(const std::vector<std::vector<double>>& of_slices, std::span<double> result) const {
  // Only some entries of all slices are held at a time.
  constexpr std::size_t most = std::size_t{1} << 18;
  std::vector<double> all;
  for (std::size_t first = 0; first < result.size(); first += most) {
    const std::size_t entries = std::min(most, result.size() - first);
    all.resize(count * entries);
    for (std::size_t slice = 0; slice < own_slices(); ++slice) {
      const auto from = of_slices[slice].begin() + static_cast<std::ptrdiff_t>(first);
      std::copy_n(from, entries,
                  all.begin() + static_cast<std::ptrdiff_t>((first_slice(rank()) + slice) * entries));
    }
    complete(std::as_writable_bytes(std::span(all)),
             [&](std::size_t slice) { return slice * entries * sizeof(double); });
    const std::span<double> sums = result.subspan(first, entries);
    std::copy_n(all.begin(), entries, sums.begin());
    for (std::size_t slice = 1; slice < count; ++slice) {
      for (std::size_t i = 0; i < entries; ++i) sums[i] += all[slice * entries + i];
    }
  }
}

void Quadric::add(double factor, const Quadric& other) {
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] += factor * other.matrix[i];
  for (std::size_t i = 0; i < linear.size(); ++i) linear[i] += factor * other.linear[i];
  constant += factor * other.constant;
}

double Quadric::dot(const Quadric& other) const {
  double sum = constant * other.constant;
  for (std::size_t i = 0; i < matrix.size(); ++i) sum += matrix[i] * other.matrix[i];
  for (std::size_t i = 0; i < linear.size(); ++i) sum += linear[i] * other.linear[i];
  return sum;
}

template <typename T>
void Design::values_of(const Quadric& quadric, std::vector<double>& result) const {
  const std::size_t d = width();
  const std::vector<T> right = to_the_right<T>(quadric.matrix, d);
  result.resize(rows());
  const std::vector<RowSlices::Block> blocks = slices_.blocks(block_of_rows);
  parallel_for(blocks.size(), 2, threads_, [&](std::size_t begin, std::size_t end) {
    std::vector<T> buffer;
    std::vector<T> image;
    for (std::size_t k = begin; k < end; ++k) {
      const RowSlices::Block& block = blocks[k];
      const MatrixView<const double> points = block_of(block);
      const MatrixView<const T> x = converted(points, buffer);
      image.resize(block.rows * d);
      for (std::size_t j = 0; j < d; j += block_of_columns) {
        const std::size_t columns = std::min(block_of_columns, d - j);
        const std::size_t above = j + columns;
        multiply(Factor<T>(x.data(), block.rows, above, d), Factor<T>(right.data() + j, above, columns, d),
                 MatrixView<T>(image.data() + j, block.rows, columns, d));
      }
      for (std::size_t row = 0; row < block.rows; ++row) {
        const std::span<const double> point = points.row(row);
        const T* const mapped = image.data() + row * d;
        double sum = quadric.constant;
        for (std::size_t i = 0; i < d; ++i)
          sum += point[i] * (static_cast<double>(mapped[i]) + quadric.linear[i]);
        result[block.first + row] = sum;
      }
    }
  });
  slices_.gather(result);
}

template <typename T>
void Design::add_columns(const RowSlices::Block& block, const std::vector<double>& weights, std::size_t begin,
                         std::size_t end, std::span<double> sums) const {
  const std::size_t d = width();
  struct Buffers {
    std::vector<T> buffer{}, weighted{}, part{};
  };
  thread_local Buffers kept;
  auto& [buffer, weighted, part] = kept;
  const MatrixView<const double> points = block_of(block);
  const Factor<T> turned = Factor<T>(converted(points, buffer)).transposed();
  double* const linear = sums.data() + d * d;
  const std::size_t own = end - begin;
  weighted.resize(block.rows * own);
  part.resize(d * block_of_columns);
  for (std::size_t row = 0; row < block.rows; ++row) {
    const double weight = weights[block.first + row];
    const std::span<const double> point = points.row(row);
    for (std::size_t i = begin; i < end; ++i) {
      const double term = weight * point[i];
      weighted[row * own + i - begin] = static_cast<T>(term);
      linear[i] += term;
    }
    if (begin == 0) linear[d] += weight;
  }
  for (std::size_t j = begin; j < end; j += block_of_columns) {
    const std::size_t columns = std::min(block_of_columns, end - j);
    const std::size_t above = j + columns;
    multiply(Factor<T>(turned.data, above, block.rows, turned.row_step, turned.column_step),
             Factor<T>(weighted.data() + j - begin, block.rows, columns, own),
             MatrixView<T>(part.data(), above, columns));
    for (std::size_t i = 0; i < above; ++i) {
      for (std::size_t k = 0; k < columns; ++k)
        sums[i * d + j + k] += static_cast<double>(part[i * columns + k]);
    }
  }
}

template <typename T>
void Design::transposed_of(const std::vector<double>& weights, Quadric& result) const {
  const std::size_t d = width();
  const std::size_t slices = slices_.own_slices();
  // The matrix, then the linear part, then the constant.
  std::vector<std::vector<double>> sums(slices, std::vector<double>(d * d + d + 1));
  const std::vector<RowSlices::Block> blocks = slices_.blocks(block_of_rows);
  // Columns are divided among threads where there are fewer slices than threads; the order of each sum is
  // that of the rows.
  const std::size_t column_blocks = (d + block_of_columns - 1) / block_of_columns;
  const std::size_t parts =
      std::clamp<std::size_t>((2 * thread_count(threads_) + slices - 1) / slices, 1, column_blocks);
  const auto first_column = [&](std::size_t part) {
    return std::min(d, column_blocks * part / parts * block_of_columns);
  };
  parallel_for(slices * parts, 2, threads_, [&](std::size_t begin, std::size_t end) {
    for (std::size_t task = begin; task < end; ++task) {
      const std::size_t slice = task / parts;
      const std::size_t part = task % parts;
      for (const RowSlices::Block& block : blocks) {
        if (block.slice == slice)
          add_columns<T>(block, weights, first_column(part), first_column(part + 1), sums[slice]);
      }
    }
  });
  std::vector<double> total(d * d + d + 1);
  slices_.sum(sums, total);
  const auto linear = total.begin() + static_cast<std::ptrdiff_t>(d * d);
  result.linear.assign(linear, total.end() - 1);
  result.constant = total.back();
  total.resize(d * d);
  result.matrix = std::move(total);
  double trace = 0.0;
  for (std::size_t i = 0; i < d; ++i) trace += result.matrix[i * d + i];
  for (std::size_t i = 0; i < d; ++i) {
    result.matrix[i * d + i] -= trace / static_cast<double>(d);
    // Only blocks on the diagonal and above it were computed.
    for (std::size_t j = i + 1; j < d; ++j) result.matrix[j * d + i] = result.matrix[i * d + j];
  }
}

MatrixView<const double> Design::block_of(const RowSlices::Block& block) const {
  return {points_.row(block.first - slices_.begin()).data(), block.rows, width()};
}

void Design::values(const Quadric& quadric, Arithmetic arithmetic, std::vector<double>& result) const {
  arithmetic == Arithmetic::float32 ? values_of<float>(quadric, result) : values_of<double>(quadric, result);
}

void Design::transposed(const std::vector<double>& weights, Arithmetic arithmetic, Quadric& result) const {
  arithmetic == Arithmetic::float32 ? transposed_of<float>(weights, result)
                                    : transposed_of<double>(weights, result);
}

}  // namespace normscope::signature
