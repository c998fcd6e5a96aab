#include "layers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/hash.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::forward {
namespace {

/// Weights that are in memory together.
constexpr std::size_t most_weights = std::size_t{1} << 24;

/// The signs of one place of a disturbed pass.
Random signs_of(const Disturbance& disturbance, std::string_view place, std::uint64_t index) {
  Fnv hash(disturbance.seed);
  for (const char c : place) hash.add(static_cast<unsigned char>(c));
  hash.add(index);
  return Random(hash.value());
}

double sign(Random& random) { return (random.bits() >> 63U) != 0 ? 1.0 : -1.0; }

/// Disturbs rows of a map from output `first` on. The lengths of the rows; empty without a disturbance.
std::vector<double> disturbed_weights(const Disturbance& disturbance, const models::Linear& map,
                                      std::uint64_t first, std::size_t width, std::vector<double>& weight) {
  std::vector<double> lengths;
  if (disturbance.seed == 0 || width == 0) return lengths;
  const std::string place = map.weight.selector();
  const double change = change_of(disturbance, place);
  for (std::size_t i = 0; i < weight.size() / width; ++i) {
    const std::span<double> row(weight.data() + i * width, width);
    lengths.push_back(std::sqrt(sum_of_squares(row)));
    if (change == 0.0) continue;
    Random random = signs_of(disturbance, place, first + i);
    const double size = change * lengths.back() / std::sqrt(static_cast<double>(width));
    for (double& value : row) value += size * sign(random);
  }
  return lengths;
}

/// Moves each product by the bound of its rounding: γ |W_i| |x|, by Cauchy and Schwarz.
void disturb_products(const Disturbance& disturbance, const models::Linear& map, MatrixView<const double> x,
                      std::span<const double> lengths, MatrixView<double> y) {
  const double unit = rounding(static_cast<std::ptrdiff_t>(x.width()));
  Random random = signs_of(disturbance, map.role + map.weight.selector(), lengths.size());
  for (std::size_t r = 0; r < y.rows(); ++r) {
    const double length = std::sqrt(sum_of_squares(x.row(r)));
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      y.row(r)[i] += unit * lengths[i] * length * sign(random);
    }
  }
}

}  // namespace

double change_of(const Disturbance& disturbance, std::string_view name) {
  if (disturbance.seed == 0) return 0.0;
  auto at = disturbance.changes.find(name);
  if (at == disturbance.changes.end()) at = disturbance.changes.find(std::string_view());
  return at == disturbance.changes.end() ? 0.0 : at->second;
}

void disturb(const Disturbance& disturbance, std::string_view place, std::ptrdiff_t terms, double relative,
             MatrixView<double> rows) {
  if (disturbance.seed == 0) return;
  Random random = signs_of(disturbance, place, rows.width());
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    double most = 0.0;
    for (const double value : rows.row(r)) most = std::max(most, std::abs(value));
    for (double& value : rows.row(r)) {
      value += (rounding(terms) * most + relative * std::abs(value)) * sign(random);
    }
  }
}

std::size_t outputs_together(std::size_t outputs, unsigned threads) {
  return std::clamp<std::size_t>(outputs / thread_count(threads), 64, 256);
}

void apply(const files::Checkpoint& checkpoint, const models::Linear& map, MatrixView<const double> x,
           unsigned threads, MatrixView<double> y, const Progress& progress, const Disturbance& disturbance) {
  const models::Linear* const maps[] = {&map};
  apply(checkpoint, maps, x, threads, y, progress, disturbance);
}

void apply(const files::Checkpoint& checkpoint, std::span<const models::Linear* const> maps,
           MatrixView<const double> x, unsigned threads, MatrixView<double> y, const Progress& progress,
           const Disturbance& disturbance) {
  const auto each = static_cast<std::size_t>(maps.front()->out);
  std::vector<double> biases;
  for (std::size_t k = 0; k < maps.size(); ++k) {
    const models::Linear* const map = maps[k];
    NORMSCOPE_ASSERT(map->out == each);
    if (x.width() != map->in) {
      throw Error(ErrorCode::Unsupported, fmt::format("not modelled: \"{}\" reads {} features, expected {}",
                                                      map->weight.selector(), map->in, x.width()));
    }
    std::vector<double> bias = models::read_bias(checkpoint, *map);
    if (!bias.empty()) {
      const double change = map->bias ? change_of(disturbance, map->bias->selector()) : 0.0;
      disturb(disturbance, "bias of " + map->weight.selector(), 0, change, {bias.data(), 1, bias.size()});
      biases.resize(maps.size() * each);
      std::copy(bias.begin(), bias.end(), biases.begin() + static_cast<std::ptrdiff_t>(k * each));
    }
  }
  const std::size_t outputs = maps.size() * each;
  const std::size_t block = std::max<std::size_t>(1, most_weights / std::max<std::size_t>(1, x.width()));
  for (std::size_t first = 0; first < outputs; first += block) {
    progress("weights", first, outputs);
    const std::size_t count = std::min(block, outputs - first);
    std::vector<double> lengths(disturbance.seed == 0 ? 0 : count);
    parallel_for(count, outputs_together(count, threads), threads, [&](std::size_t begin, std::size_t end) {
      std::vector<double> weight;
      for (std::size_t at = first + begin; at < first + end;) {
        const models::Linear& map = *maps[at / each];
        const std::size_t some = std::min(each - at % each, first + end - at);
        std::vector<double> rows = models::read_weight(checkpoint, map, at % each, some);
        const std::vector<double> of_rows = disturbed_weights(disturbance, map, at % each, x.width(), rows);
        for (std::size_t i = 0; i < of_rows.size(); ++i) lengths[at - first + i] = of_rows[i];
        at += some;
        if (weight.empty()) {
          weight = std::move(rows);
        } else {
          weight.insert(weight.end(), rows.begin(), rows.end());
        }
      }
      const MatrixView<const double> part(weight.data(), end - begin, x.width());
      multiply(x, Factor<double>(part).transposed(),
               MatrixView<double>(y.data() + first + begin, x.rows(), end - begin, y.stride()));
    });
    for (std::size_t at = 0; at < lengths.size();) {
      const std::size_t some = std::min(each - (first + at) % each, count - at);
      const std::span<const double> of_rows = std::span(lengths).subspan(at, some);
      disturb_products(disturbance, *maps[(first + at) / each], x, of_rows,
                       MatrixView<double>(y.data() + first + at, x.rows(), some, y.stride()));
      at += some;
    }
  }
  if (biases.empty()) return;
  parallel_for(x.rows(), 16, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const std::span<double> row = y.row(r);
      for (std::size_t i = 0; i < outputs; ++i) row[i] += biases[i];
    }
  });
}

std::vector<double> apply(const files::Checkpoint& checkpoint, const models::Linear& map,
                          MatrixView<const double> x, unsigned threads, const Disturbance& disturbance) {
  const auto outputs = static_cast<std::size_t>(map.out);
  std::vector<double> y(x.rows() * outputs);
  apply(checkpoint, map, x, threads, {y.data(), x.rows(), outputs}, {}, disturbance);
  return y;
}

std::vector<double> whole_weight(const files::Checkpoint& checkpoint, const models::Linear& map,
                                 unsigned threads) {
  const auto in = static_cast<std::size_t>(map.in), out = static_cast<std::size_t>(map.out);
  std::vector<double> weight(out * in);
  parallel_for(out, 64, threads, [&](std::size_t begin, std::size_t end) {
    const std::vector<double> some = models::read_weight(checkpoint, map, begin, end - begin);
    std::copy(some.begin(), some.end(), weight.begin() + static_cast<std::ptrdiff_t>(begin * in));
  });
  return weight;
}

std::vector<double> table_row(const files::Checkpoint& checkpoint, const models::Linear& table,
                              std::size_t index, const Disturbance& disturbance) {
  models::Linear row = table;
  row.weight.offset += index * table.out;
  row.layout = models::Layout::out_in;
  row.in = table.out;
  row.out = row.stored_out = 1;
  std::vector<double> values = models::read_weight(checkpoint, row, 0, 1);
  (void)disturbed_weights(disturbance, row, index, values.size(), values);
  return values;
}

}  // namespace normscope::forward
