#include "matrix_pass.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <normscope/bytes/quote.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::rewrite {
namespace {

constexpr std::size_t block_elements = std::size_t{1} << 18U;

[[noreturn]] void refuse_value(const checkpoint::Tensor& tensor, double old, double rewritten) {
  throw Error(ErrorCode::Unsupported,
              std::isfinite(old)
                  ? fmt::format("rewrite: tensor {}: {:g} becomes {:g}, which {} cannot hold",
                                bytes::quote(tensor.name), old, rewritten, to_string(tensor.dtype))
                  : fmt::format("rewrite: tensor {} has the value {}, expected finite weights",
                                bytes::quote(tensor.name), std::isnan(old) ? "nan" : "inf"));
}

}  // namespace

void expect_finite(const checkpoint::Tensor& tensor, std::span<const double> old,
                   std::span<const double> exact, std::span<const double> stored) {
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (!std::isfinite(stored[i])) refuse_value(tensor, old[i], exact[i]);
  }
}

std::size_t MatrixPass::rows_of_block() const {
  return std::max<std::size_t>(1, block_elements / std::max<std::size_t>(1, matrix_.columns()));
}

void MatrixPass::load(std::size_t first, std::size_t rows) {
  const std::size_t columns = matrix_.columns();
  const std::size_t count = rows * columns;
  const std::size_t size = bits(matrix_.tensor.dtype) / 8;
  old_.resize(count);
  const std::uint64_t begin = matrix_.map.weight.offset + first * columns;
  const std::span<const std::byte> stored =
      matrix_.tensor.bytes.part(begin * size, count * size).fetch(bytes_);
  parallel_for(rows, std::max<std::size_t>(1, (std::size_t{1} << 14U) / std::max<std::size_t>(1, columns)),
               threads_, [&](std::size_t from, std::size_t to) {
                 decode(matrix_.tensor.dtype,
                        stored.subspan(from * columns * size, (to - from) * columns * size),
                        std::span(old_).subspan(from * columns, (to - from) * columns));
               });
}

void MatrixPass::encode_rows(std::size_t rows) {
  const std::size_t columns = matrix_.columns();
  const std::size_t size = bits(matrix_.tensor.dtype) / 8;
  bytes_.resize(old_.size() * size);
  stored_.resize(old_.size());
  parallel_for(rows, std::max<std::size_t>(1, (std::size_t{1} << 14U) / std::max<std::size_t>(1, columns)),
               threads_, [&](std::size_t from, std::size_t to) {
                 const std::size_t begin = from * columns;
                 const std::size_t count = (to - from) * columns;
                 const std::span<const double> exact = std::span<const double>(exact_).subspan(begin, count);
                 const std::span<std::byte> encoded = std::span(bytes_).subspan(begin * size, count * size);
                 const std::span<double> stored = std::span(stored_).subspan(begin, count);
                 encode(matrix_.tensor.dtype, exact, encoded);
                 decode(matrix_.tensor.dtype, encoded, stored);
                 expect_finite(matrix_.tensor, std::span<const double>(old_).subspan(begin, count), exact,
                               stored);
               });
}

void MatrixPass::read(const std::function<void(const Block&)>& use) {
  for (std::size_t first = 0; first < matrix_.rows(); first += rows_of_block()) {
    const std::size_t rows = std::min<std::size_t>(rows_of_block(), matrix_.rows() - first);
    load(first, rows);
    expect_finite(matrix_.tensor, old_, old_, old_);
    use({first, rows, old_, {}, {}});
  }
}

void MatrixPass::apply(const Block& block, std::span<const Probe> old_inputs,
                       std::span<const Probe> new_inputs, std::vector<Outputs>& outputs) const {
  const std::size_t columns = matrix_.columns();
  const auto add = [&](Outputs& output, std::size_t at, std::size_t input) {
    for (std::size_t k = 0; k < probe_count; ++k) {
      output.old[k] += block.old[at] * old_inputs[input][k];
      output.exact[k] += block.exact[at] * new_inputs[input][k];
      output.stored[k] += block.stored[at] * new_inputs[input][k];
    }
  };
  if (matrix_.map.layout == model::Layout::out_in) {
    parallel_for(block.rows, 1, threads_, [&](std::size_t from, std::size_t to) {
      for (std::size_t row = from; row < to; ++row) {
        Outputs output;
        for (std::size_t column = 0; column < columns; ++column) add(output, row * columns + column, column);
        outputs[block.first + row] = output;
      }
    });
    return;
  }
  parallel_for(columns, 64, threads_, [&](std::size_t from, std::size_t to) {
    for (std::size_t row = 0; row < block.rows; ++row) {
      for (std::size_t column = from; column < to; ++column) {
        add(outputs[column], row * columns + column, block.first + row);
      }
    }
  });
}

std::vector<double> store(const checkpoint::Tensor& tensor, std::span<const double> values,
                          const Sink& sink) {
  std::vector<std::byte> encoded(values.size() * bits(tensor.dtype) / 8);
  std::vector<double> stored(values.size());
  encode(tensor.dtype, values, encoded);
  decode(tensor.dtype, encoded, stored);
  expect_finite(tensor, values, values, stored);
  sink(encoded);
  return stored;
}

}  // namespace normscope::rewrite
