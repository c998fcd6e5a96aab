#include "fiber_pass.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/parallel.hpp>

namespace normscope::rewrite {
namespace {

constexpr std::size_t elements_of_a_block = std::size_t{1} << 18U;
constexpr std::size_t bytes_written_at_a_time = std::size_t{1} << 20U;
/// Number of columns that are gathered together, so that whole cache lines of each row are used.
constexpr std::size_t columns_at_a_time = 64;

}  // namespace

/// Decodes the fibers of a block from `bytes_`, or encodes them to it.
void FiberPass::convert(std::size_t count, bool decodes, std::span<double> values, std::size_t first) {
  const Dtype dtype = matrix_.tensor.dtype;
  const std::size_t size = bits(dtype) / 8;
  const std::size_t columns = matrix_.columns();
  if (along_rows_) {
    parallel_for(count, 1, threads_, [&](std::size_t from, std::size_t to) {
      const std::span<std::byte> bytes = std::span(bytes_).subspan(
          (first + from - first_row_) * columns * size, (to - from) * columns * size);
      const std::span<double> part = values.subspan(from * columns, (to - from) * columns);
      decodes ? decode(dtype, bytes, part) : encode(dtype, part, bytes);
    });
    return;
  }
  const std::size_t rows = matrix_.rows();
  parallel_for(rows, 64, threads_, [&](std::size_t from, std::size_t to) {
    std::vector<double> part(count);
    for (std::size_t row = from; row < to; ++row) {
      const std::span<std::byte> bytes =
          std::span(bytes_).subspan((row * columns + first) * size, count * size);
      if (decodes) decode(dtype, bytes, part);
      for (std::size_t i = 0; i < count; ++i) {
        double& value = values[i * rows + row];
        decodes ? value = part[i] : part[i] = value;
      }
      if (!decodes) encode(dtype, part, bytes);
    }
  });
}

void FiberPass::rewrite_block(std::size_t first, std::size_t count, const Change& change,
                              const std::function<void(const Fibers&)>& use) {
  const std::size_t length = along_rows_ ? matrix_.columns() : matrix_.rows();
  old_.resize(count * length);
  stored_.resize(count * length);
  convert(count, true, old_, first);
  expect_finite(matrix_.tensor, old_, old_, old_);
  exact_ = old_;
  change(exact_, first);
  convert(count, false, exact_, first);
  convert(count, true, stored_, first);
  expect_finite(matrix_.tensor, old_, exact_, stored_);
  use({first, count, length, old_, exact_, stored_});
}

void FiberPass::patch(std::size_t begin, std::size_t end, const Patches& patches, std::size_t& next) {
  const std::size_t size = bits(matrix_.tensor.dtype) / 8;
  for (; next < patches.first.size() && patches.first[next] < end; ++next) {
    std::copy_n(patches.second.begin() + static_cast<std::ptrdiff_t>(next * size), size,
                bytes_.begin() + static_cast<std::ptrdiff_t>((patches.first[next] - begin) * size));
  }
}

void FiberPass::rewrite(const Change& change, const std::function<void(const Fibers&)>& use, const Sink& sink,
                        const Patches& patches) {
  const std::size_t size = bits(matrix_.tensor.dtype) / 8;
  const std::size_t columns = matrix_.columns();
  const std::size_t rows = matrix_.rows();
  const auto load = [&](std::size_t first, std::size_t count) {
    std::vector<std::byte> buffer;
    const std::uint64_t begin = matrix_.map.weight.offset + first * columns;
    const auto found = matrix_.tensor.bytes.part(begin * size, count * columns * size).fetch(buffer);
    buffer.empty() ? bytes_.assign(found.begin(), found.end()) : bytes_.swap(buffer);
    first_row_ = first;
  };
  std::size_t next = 0;
  if (along_rows_) {
    const std::size_t block =
        std::max<std::size_t>(1, elements_of_a_block / std::max<std::size_t>(1, columns));
    for (std::size_t first = 0; first < rows; first += block) {
      const std::size_t count = std::min(block, rows - first);
      load(first, count);
      rewrite_block(first, count, change, use);
      patch(first * columns, (first + count) * columns, patches, next);
      sink(bytes_);
    }
    return;
  }
  load(0, rows);
  for (std::size_t first = 0; first < columns; first += columns_at_a_time) {
    rewrite_block(first, std::min(columns_at_a_time, columns - first), change, use);
  }
  patch(0, rows * columns, patches, next);
  for (std::size_t at = 0; at < bytes_.size(); at += bytes_written_at_a_time) {
    sink(std::span(bytes_).subspan(at, std::min(bytes_written_at_a_time, bytes_.size() - at)));
  }
}

}  // namespace normscope::rewrite
