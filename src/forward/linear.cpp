#include "linear.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/product.hpp>

namespace normscope::forward {
namespace {

/// Weights that are in memory together.
constexpr std::size_t most_weights = std::size_t{1} << 24;

}  // namespace

void apply(const files::Checkpoint& checkpoint, const models::Linear& map, MatrixView<const double> x,
           unsigned threads, MatrixView<double> y, const Progress& progress) {
  if (x.width() != map.in) {
    throw Error(ErrorCode::Unsupported, fmt::format("not modelled: \"{}\" reads {} features, expected {}",
                                                    map.weight.selector(), map.in, x.width()));
  }
  const std::vector<double> bias = models::read_bias(checkpoint, map);
  const auto outputs = static_cast<std::size_t>(map.out);
  const std::size_t block = std::max<std::size_t>(1, most_weights / std::max<std::size_t>(1, x.width()));
  for (std::size_t first = 0; first < outputs; first += block) {
    progress("weights", first, outputs);
    const std::size_t count = std::min(block, outputs - first);
    const std::vector<double> weight = models::read_weight(checkpoint, map, first, count);
    parallel_for(count, 64, threads, [&](std::size_t begin, std::size_t end) {
      const MatrixView<const double> part(weight.data() + begin * x.width(), end - begin, x.width());
      multiply(x, Factor<double>(part).transposed(),
               MatrixView<double>(y.data() + first + begin, x.rows(), end - begin, y.stride()));
    });
  }
  for (std::size_t r = 0; r < x.rows() && !bias.empty(); ++r) {
    const std::span<double> row = y.row(r);
    for (std::size_t i = 0; i < outputs; ++i) row[i] += bias[i];
  }
}

std::vector<double> apply(const files::Checkpoint& checkpoint, const models::Linear& map,
                          MatrixView<const double> x, unsigned threads) {
  const auto outputs = static_cast<std::size_t>(map.out);
  std::vector<double> y(x.rows() * outputs);
  apply(checkpoint, map, x, threads, {y.data(), x.rows(), outputs});
  return y;
}

std::vector<double> table_row(const files::Checkpoint& checkpoint, const models::Linear& table,
                              std::size_t index) {
  models::Linear row = table;
  row.weight.offset += index * table.out;
  row.layout = models::Layout::out_in;
  row.in = table.out;
  row.out = row.stored_out = 1;
  return models::read_weight(checkpoint, row, 0, 1);
}

}  // namespace normscope::forward
